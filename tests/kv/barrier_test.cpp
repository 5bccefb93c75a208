// Barriers of stores: all workers wait, pushes before them count, and a worker that is gone is not
// awaited.
#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "core/text.hpp"
#include "kv.hpp"

namespace leeway::kv {
namespace {

const std::vector<plan::Consistency> kPolicies = {plan::Bsp{}, plan::Asp{}, plan::Ssp{2},
                                                  plan::Adaptive{1, 4}};

Result run_or_simulate(const Loop& loop, const Options& options) {
  const bool simulated = GENERATE(false, true);
  CAPTURE(simulated);
  return simulated ? simulate(loop, options) : run(loop, options);
}

/// In phase p, worker r pushes p + r ones; after the barrier, all of them have arrived.
void push_in_phases(Store& store, int phases) {
  const float one = 1;
  const auto workers = static_cast<int>(store.workers()), rank = static_cast<int>(store.rank());
  float zero = 0, sum = 0, expected = 0;
  store.init("sum", {&zero, {}});
  for (int phase = 0; phase < phases; ++phase) {
    for (int i = 0; i < phase + rank; ++i) {
      store.compute(milliseconds(1 + 3 * rank));
      store.push("sum", {&one, {}});
      store.end_iteration();
    }
    store.barrier();
    for (int worker = 0; worker < workers; ++worker) expected += static_cast<float>(phase + worker);
    store.pull("sum", {&sum, {}}).wait();
    // Checks of Catch are for one thread; kv::run() throws this again.
    if (sum != expected) throw std::runtime_error(concat(sum, " instead of ", expected));
    store.barrier();  // no worker pushes before all have pulled
  }
}

TEST_CASE("after a barrier, a worker sees the pushes of all workers") {
  const auto policy = GENERATE(from_range(kPolicies));
  const std::uint32_t workers = GENERATE(1u, 3u);
  CAPTURE(workers);
  const Result result = run_or_simulate([](Store& store) { push_in_phases(store, 4); },
                                        {.workers = workers, .consistency = policy});
  CHECK(result.error == "");
}

TEST_CASE("a barrier does not wait for a worker that has left") {
  const Result result = run_or_simulate(
      [](Store& store) {
        float zero = 0, one = 1;
        store.init("w", {&zero, {}});
        for (int i = 0; i < 10; ++i) {
          if (store.rank() == 1 && i == 4) return;
          store.push("w", {&one, {}});
          store.barrier();
        }
      },
      {.workers = 3, .consistency = plan::Ssp{1}});
  CHECK(result.error == "");
  CHECK(result.weight("w")[0] == 24);
}

TEST_CASE("a barrier does not wait for a worker that is lost") {
  std::atomic<int> passed = 0;
  Options options{.workers = 3, .consistency = plan::Bsp{}};
  options.faults = {fault(worker(1), at_iteration(3), plan::Killed{})};
  const Result result = run_or_simulate(
      [&](Store& store) {
        float zero = 0, one = 1;
        store.init("w", {&zero, {}});
        for (int i = 0; i < 20; ++i) {
          store.push("w", {&one, {}});
          store.compute(milliseconds(2));
          store.barrier();
          if (store.rank() != 1) ++passed;
        }
      },
      options);
  CHECK(result.error == "");
  CHECK(passed == 40);
}

TEST_CASE("leased samples return at a barrier, and each is trained once") {
  const auto policy = GENERATE(from_range(kPolicies));
  const Result result = run_or_simulate(
      [](Store& store) {
        float zero = 0;
        store.init("samples", {&zero, {}});
        for (int i = 0; auto range = store.next_range(); ++i) {
          const auto count = static_cast<float>(range->samples.size());
          store.push("samples", {&count, {}});
          if (i % 5 == 4) store.barrier();
        }
        store.barrier();
      },
      {.workers = 3, .consistency = policy, .samples = 1000, .batch = 10, .epochs = 2});
  CHECK(result.error == "");
  CHECK(result.weight("samples")[0] == 2000);
}

TEST_CASE(
    "samples that a loop has not seen are trained, although it reads weights between barriers") {
  const auto policy = GENERATE(from_range(kPolicies));
  const Result result = run_or_simulate(
      [](Store& store) {
        float zero = 0;
        store.init("samples", {&zero, {}});
        for (int i = 0; auto range = store.next_range(); ++i) {
          const auto count = static_cast<float>(range->samples.size());
          store.push("samples", {&count, {}});
          if (i % 4 == 1) {
            store.barrier();
            store.get("samples");
            store.barrier();
          }
          if (i % 4 == 3) {
            store.get("samples");
            store.end_iteration();
          }
        }
      },
      {.workers = 3, .consistency = policy, .samples = 600, .batch = 10});
  CHECK(result.error == "");
  CHECK(result.weight("samples")[0] == 600);
}

TEST_CASE(
    "a worker that was evicted at a barrier passes it, and meets the others at the next one") {
  Options options{.workers = 3, .consistency = plan::Ssp{2}};
  options.faults = {freezes(worker(1), at_seconds(0.05), 1.5)};
  std::vector<int> phases(3, 0);
  const Result result = simulate(
      [&](Store& store) {
        float zero = 0, one = 1;
        store.init("w", {&zero, {}});
        for (int phase = 0; phase < 300; ++phase) {
          phases[store.rank()] = phase;
          store.push("w", {&one, {}});
          store.compute(milliseconds(10));
          store.barrier();
          // Only the frozen worker may be behind.
          CHECK(phases[0] - phases[2] <= 1);
          CHECK(phases[2] - phases[0] <= 1);
        }
        if (store.rank() == 1) CHECK(phases[0] == 299);
      },
      options);
  CHECK(result.error == "");
  CHECK(result.faults_fired[0]);
}

TEST_CASE("a barrier in one worker only waits until the others have left") {
  const Result result = run_or_simulate(
      [](Store& store) {
        float zero = 0, one = 1;
        store.init("w", {&zero, {}});
        if (store.rank() == 0) store.barrier();
        const int rounds = store.rank() == 0 ? 1 : 10;
        for (int i = 0; i < rounds; ++i) {
          store.push("w", {&one, {}});
          store.end_iteration();
        }
        if (store.rank() == 0) CHECK(store.get("w")[0] == 21);
      },
      {.workers = 3, .consistency = plan::Ssp{1}});
  CHECK(result.error == "");
}

}  // namespace
}  // namespace leeway::kv
