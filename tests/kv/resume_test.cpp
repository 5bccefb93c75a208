// Stores: runs that write checkpoints and are resumed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "kv.hpp"
#include "tests/support/process.hpp"

namespace leeway::kv {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;

constexpr std::int64_t kSamples = 480;

/// Adam has state, and each sample another gradient: only a run that continues exactly has the
/// bits of an uninterrupted one.
void train_with(Store& store, bool bias_first) {
  std::vector<float> w(6, 0.5f), gradient(6);
  if (bias_first) store.init("bias", {w.data(), {}});
  store.init("w", {w.data(), {2, 3}});
  if (!bias_first) store.init("bias", {w.data(), {}});
  store.set_optimizer(adam(0.01));
  while (const auto range = store.next_range()) {
    store.pull("w", {w.data(), {2, 3}}).wait();
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = w[i] - static_cast<float>(range->samples[i]) / kSamples;
    store.push("w", {gradient.data(), {2, 3}});
    store.push("bias", {gradient.data(), {}});
  }
}

void train(Store& store) {
  train_with(store, false);
}

Options options_in(const std::string& folder, double epochs) {
  Options options{.workers = 3,
                  .consistency = plan::Bsp{},
                  .samples = kSamples,
                  .batch = 8,
                  .epochs = epochs,
                  .checkpoints = {.every = plan::EveryIterations{12}}};
  options.run.folder = folder;
  return options;
}

using Host = Result (*)(const Loop&, const Options&);

TEST_CASE("a resumed loop gives the bits of an uninterrupted one, on threads and simulated") {
  const Host host = GENERATE(Host{&run}, Host{&simulate});
  const TemporaryFolder out;
  const Result whole = host(train, options_in(out / "whole", 3));
  REQUIRE(whole.error == "");
  const Result first = host(train, options_in(out / "run", 1.5));
  REQUIRE(first.error == "");
  CHECK(first.samples_trained == kSamples * 3 / 2);
  Options options = options_in(out / "run", 3);
  options.run.resume = out / "run";
  // Keys may come in another order.
  const Result resumed = host([](Store& store) { train_with(store, true); }, options);
  REQUIRE(resumed.error == "");
  CHECK(resumed.samples_trained == 3 * kSamples);
  for (const char* key : {"w", "bias"})
    CHECK(std::ranges::equal(resumed.weight(key), whole.weight(key)));
}

TEST_CASE("a loop without samples continues at its iteration") {
  const TemporaryFolder out;
  std::vector<std::int64_t> first_of_worker(3, -1);
  const auto count_to = [&](std::int64_t last) {
    return [&, last](Store& store) {
      const float zero = 0, one = 1;
      store.init("count", {&zero, {}});
      first_of_worker[store.rank()] = store.iteration();
      while (store.iteration() < last) {
        store.push("count", {&one, {}});
        store.end_iteration();
      }
    };
  };
  Options options{
      .workers = 2, .consistency = plan::Bsp{}, .checkpoints = {.every = plan::EveryIterations{4}}};
  options.run.folder = out / "run";
  const Result first = simulate(count_to(20), options);
  REQUIRE(first.error == "");
  CHECK(first_of_worker == std::vector<std::int64_t>{0, 0, -1});
  options.run.resume = out / "run";
  options.workers = 3;
  const Result resumed = simulate(count_to(50), options);
  REQUIRE(resumed.error == "");
  CHECK(first_of_worker[0] >= 20);
  CHECK(first_of_worker[0] < 30);
  CHECK(first_of_worker == std::vector(3, first_of_worker[0]));
  const auto left = static_cast<float>(50 - first_of_worker[0]);
  CHECK(resumed.weight("count")[0] == first.weight("count")[0] + 3 * left);
}

TEST_CASE("a local store counts its iterations") {
  Store store = Store::create("local");
  const float one = 1;
  store.init("w", {&one, {}});
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(store.iteration() == i);
    CHECK_THROWS_WITH(store.init("late", {&one, {}}), Contains("the first iteration has begun"));
    store.push("w", {&one, {}});
    store.end_iteration();
  }
}

TEST_CASE("a run with other keys or samples is not resumed") {
  const TemporaryFolder out;
  REQUIRE(run(train, options_in(out / "run", 1)).error == "");
  Options options = options_in(out / "run", 2);
  options.run.resume = out / "run";
  const auto other_shape = [](Store& store) {
    const float values[4] = {};
    store.init("w", {values, {2, 2}});
    store.init("bias", {values, {}});
    store.set_optimizer(adam(0.01));
    store.next_range();
  };
  const std::string error = run(other_shape, options).error;
  CHECK_THAT(error, Contains("w") && Contains("2x3") && Contains("2x2"));
  options.samples = 2 * kSamples;
  CHECK_THAT(run(train, options).error,
             Contains("the checkpoint has 480 training samples per epoch, the data 960"));
}

}  // namespace
}  // namespace leeway::kv
