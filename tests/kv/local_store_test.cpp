// Local stores: updates at once, and the results of a run with one worker.
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "kv.hpp"

namespace leeway::kv {
namespace {

using Catch::Matchers::Contains;

/// A few steps of a quadratic, with the numbers of the samples as data.
void descend(Store& store, const plan::Optimizer& optimizer, std::vector<float>& last) {
  std::vector<float> w = {1, -2, 0.5f, 4}, gradient(w.size());
  store.init("w", {w.data(), {2, 2}});
  store.set_optimizer(optimizer);
  while (const auto range = store.next_range()) {
    store.pull("w", {w.data(), {2, 2}}).wait();
    for (std::size_t i = 0; i < w.size(); ++i) {
      gradient[i] = w[i];
      for (const std::int64_t sample : range->samples)
        gradient[i] += static_cast<float>(sample) / 1000;
    }
    store.push("w", {gradient.data(), {2, 2}});
    last = store.get("w");
  }
}

TEST_CASE("a local store gives the bits of a run with one worker") {
  const auto optimizer =
      GENERATE(sgd(0.1), momentum(0.1), adam(), adagrad(), muon(0.05), sum_gradients());
  Store store = Store::create("local", {.samples = 50, .batch = 8, .epochs = 2.5, .seed = 7});
  std::vector<float> local, shared;
  descend(store, optimizer, local);
  const Result result =
      run([&](Store& one) { descend(one, optimizer, shared); }, {.workers = 1,
                                                                 .consistency = plan::Bsp{},
                                                                 .samples = 50,
                                                                 .batch = 8,
                                                                 .epochs = 2.5,
                                                                 .seed = 7});
  REQUIRE(result.error == "");
  const auto trained = result.weight("w");
  CHECK(local == std::vector<float>(trained.begin(), trained.end()));
  CHECK(store.iterations() == 18);  // seven in an epoch, and four
}

TEST_CASE("a local store leases each sample of an epoch once") {
  Store store = Store::create("local", {.samples = 23, .batch = 5, .epochs = 2});
  float w = 0;
  store.init("w", {&w, {}});
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  while (const auto range = store.next_range())
    for (const std::int64_t sample : range->samples) ++seen[{range->epoch, sample}];
  CHECK(seen.size() == 46);
  for (const auto& [sample, times] : seen) CHECK(times == 1);
}

TEST_CASE("a push to a local store is done at once, and the buffer is free") {
  Store store = Store::create("local");
  float w[2] = {1, 2}, one[2] = {1, 1};
  store.init(3, {w, {2}});
  int calls = 0;
  Handle push = store.push(3, {one, {2}});
  push.then([&] { ++calls; });
  one[0] = 100;
  CHECK(push.done());
  CHECK(calls == 1);
  CHECK(store.view(3).floats()[0] == 2);
  store.push_pull(3, {one, {2}}, {w, {2}}).wait();
  CHECK(w[0] == 102);
  CHECK(store.iterations() == 2);
  CHECK(store.workers() == 1);
  CHECK(store.keys() == std::vector<std::string>{"3"});
}

TEST_CASE("misuse of a local store is refused with the remedy") {
  Store store = Store::create("local");
  float x[2] = {};
  CHECK_THROWS_WITH(store.end_iteration(), Contains("has no keys"));
  auto clipped = sgd(0.1);
  clipped.clip_norm = 1;
  Store other = Store::create("local");
  CHECK_THROWS_WITH(other.set_optimizer(clipped), Contains("without a norm over all keys"));
  other.init("w", {x, {2}});
  CHECK_THROWS_WITH(other.next_range(), Contains("has no samples to lease"));
  CHECK_THROWS_WITH(other.push("w", {x, {1}}), Contains("its shape is 2, not 1"));
  CHECK_THROWS_WITH(other.push("v", {x, {1}}), Contains("it was not initialised"));
  CHECK_THROWS_WITH(other.init("v", {x, {1}}), Contains("the first iteration has begun"));
  CHECK_THROWS_WITH(Store::create("global"), Contains("give local, dist_sync"));
}

}  // namespace
}  // namespace leeway::kv
