// Misuse of stores that is found between two calls.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "kv.hpp"

namespace leeway::kv {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a call fails while another thread waits in a call of the store") {
  std::atomic<bool> is_refused = false;
  std::string text;
  const Loop loop = [&](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    if (store.rank() == 1) {
      while (!is_refused) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return store.barrier();
    }
    const std::jthread other([&] {
      while (!is_refused) {
        try {
          (void)store.iterations();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } catch (const Busy& error) {
          text = error.what();
          is_refused = true;
        }
      }
    });
    // The first calls may meet one of the other thread.
    for (bool is_done = false; !is_done;) {
      try {
        store.barrier();
        is_done = true;
      } catch (const Busy&) {
      }
    }
  };
  CHECK(run(loop, {.workers = 2}).error == "");
  CHECK_THAT(text, Contains("two threads call this store at once"));
}

TEST_CASE("a worker that never ends an iteration holds the others up until it leaves") {
  const Loop loop = [](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    for (int i = 0; i < 5; ++i) {
      store.push("w", {&one, {}});
      if (store.rank() == 0) store.end_iteration();
      if (store.rank() == 1) return store.compute(milliseconds(50));
    }
  };
  const Result result = simulate(loop, {.workers = 2, .consistency = plan::Bsp{}});
  CHECK(result.error == "");
  CHECK(result.totals.workers[0].wait.seconds() >= 0.04);
  CHECK(result.weight("w")[0] == 1 + 5 + 1);  // its only push counts when it leaves
}

#ifdef LEEWAY_CHECK_BUFFERS
TEST_CASE("a gradient that is written after its push is found, also before its group is complete") {
  const bool has_group = GENERATE(false, true);
  const Loop loop = [&](Store& store) {
    const std::vector<float> zeros(8, 0.0f);
    store.init("w", {zeros.data(), {8}});
    if (has_group) store.init("v", {zeros.data(), {8}});
    for (int i = 0; i < 2; ++i) {
      float* const gradient = store.gradient("w").floats();
      std::fill_n(gradient, 8, 1.0f);
      store.push("w");
      if (i == 1) gradient[3] = 2;
      if (has_group) store.push("v", {zeros.data(), {8}});
      store.end_iteration();
    }
  };
  // On threads, the shard would read while the loop writes.
  CHECK_THROWS_WITH(simulate(loop, {.workers = 1}),
                    Contains("the gradient of key \"w\"") && Contains("after its push"));
}
#endif

}  // namespace
}  // namespace leeway::kv
