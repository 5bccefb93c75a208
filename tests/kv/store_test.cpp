// Stores: the arithmetic of pushes under each policy, iterations, misuse.
#include "kv.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "core/text.hpp"

namespace leeway::kv {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t kRounds = 5;

/// Worker r pushes (r + 1) * (round + 1) in each round, and the policy adds.
float expected(std::uint32_t workers) {
  const float of_workers = static_cast<float>(workers * (workers + 1)) / 2;
  return of_workers * static_cast<float>(kRounds * (kRounds + 1)) / 2;
}

const std::vector<plan::Consistency> kPolicies = {plan::Bsp{}, plan::Asp{}, plan::Ssp{3},
                                                  plan::Adaptive{1, 4}};

void push_known_values(Store& store) {
  const Shape big{1200, 1100}, small{3, 5, 7}, scalar{};
  std::vector<float> zeros(static_cast<std::size_t>(big.count()), 0.0f);
  store.init("big", {zeros.data(), big});
  store.init(7, {zeros.data(), small});
  store.init("scalar", {zeros.data(), scalar});
  for (int round = 0; round < kRounds; ++round) {
    const auto value = static_cast<float>((store.rank() + 1) * static_cast<unsigned>(round + 1));
    const std::vector<float> gradient(zeros.size(), value);
    store.push("big", {gradient.data(), big});
    store.push(7, {gradient.data(), small});
    store.push("scalar", {gradient.data(), scalar});
    store.end_iteration();
  }
}

void check_sums(const Result& result, std::uint32_t workers) {
  REQUIRE(result.error == "");
  REQUIRE(result.ok());
  for (const char* key : {"big", "7", "scalar"}) {
    CAPTURE(key);
    const auto values = result.weight(key);
    CHECK(std::ranges::all_of(values, [&](float value) { return value == expected(workers); }));
  }
}

TEST_CASE("the sum of all pushes arrives, under each policy") {
  const auto policy = GENERATE(from_range(kPolicies));
  const std::uint32_t workers = GENERATE(1u, 3u);
  const Options options{.workers = workers, .consistency = policy};
  SECTION("on threads") {
    check_sums(run(push_known_values, options), workers);
  }
  SECTION("in a simulation") {
    check_sums(simulate(push_known_values, options), workers);
  }
}

TEST_CASE("a pull after a push has the worker's own push, and under bsp that of all") {
  const Loop loop = [](Store& store) {
    float w = 0, one = 1;
    store.init("w", {&w, {}});
    for (int round = 1; round <= 10; ++round) {
      store.push_pull("w", {&one, {}}, {&w, {}}).wait();
      if (w != static_cast<float>(round * 3)) throw std::runtime_error("wrong sum");
    }
  };
  CHECK(simulate(loop, {.workers = 3, .consistency = plan::Bsp{}}).error == "");
  CHECK(run(loop, {.workers = 3, .consistency = plan::Bsp{}}).error == "");
}

/// y = 3x + 2 at 100 points, by hand.
void fit_line(Store& store) {
  float w[2] = {0, 0}, gradient[2];
  store.init("line", {w, {2}});
  store.set_optimizer(sgd(0.5));
  while (const auto range = store.next_range()) {
    store.pull("line", {w, {2}}).wait();
    std::fill_n(gradient, 2, 0.0f);
    for (const std::int64_t sample : range->samples) {
      const float x = static_cast<float>(sample) / 50 - 1;
      const float error = w[0] * x + w[1] - (3 * x + 2);
      gradient[0] += 2 * error * x / static_cast<float>(range->samples.size());
      gradient[1] += 2 * error / static_cast<float>(range->samples.size());
    }
    store.compute(milliseconds(2));
    store.push("line", {gradient, {2}});
  }
}

Options line_options() {
  return {.workers = 4, .samples = 100, .batch = 10, .epochs = 30};
}

void check_line(const Result& result) {
  REQUIRE(result.error == "");
  CHECK(result.weight("line")[0] == Approx(3).margin(0.01));
  CHECK(result.weight("line")[1] == Approx(2).margin(0.01));
  CHECK(result.samples_trained == 3000);
}

TEST_CASE("ranges lease each sample of each epoch once, and the loop ends with them") {
  check_line(run(fit_line, line_options()));
  check_line(simulate(fit_line, line_options()));
}

TEST_CASE("a loop with encoded pushes and pulls converges, also if a worker crashes") {
  Options options = line_options();
  options.compress = {.push = int8(), .pull = fp16()};
  check_line(run(fit_line, options));
  options.faults = {crashes(worker(2), at_seconds(0.03), 0.02)};
  check_line(simulate(fit_line, options));
}

TEST_CASE("a simulated loop is slowed down, crashes and starts again, and no sample is lost") {
  Options options = line_options();
  options.stragglers = {slow(1, 3)};
  options.faults = {crashes(worker(2), at_seconds(0.03), 0.02)};
  const Result faulty = simulate(fit_line, options);
  check_line(faulty);
  CHECK(faulty.faults_fired[0]);
  CHECK(faulty.straggler_seconds[0] > 0.01);
  CHECK(faulty.seconds > simulate(fit_line, line_options()).seconds);
}

TEST_CASE("two simulations with one seed take the same steps") {
  Options options = line_options();
  options.faults = {crashes(worker(2), at_seconds(0.03), 0.02)};
  std::set<std::uint64_t> hashes;
  for (options.seed = 1; options.seed <= 5; ++options.seed) {
    const std::uint64_t first = simulate(fit_line, options).protocol_hash;
    CHECK(first == simulate(fit_line, options).protocol_hash);
    hashes.insert(first);
  }
  CHECK(hashes.size() == 5);
}

std::string error_of(const Loop& loop, const Options& options = {.workers = 2}) {
  try {
    return concat("no error: ", simulate(loop, options).error);
  } catch (const StoreError& error) {
    return error.what();
  }
}

TEST_CASE("misuse is refused with the key and the remedy") {
  float x[6] = {};
  const auto init = [&](Store& store) { store.init("w", {x, {2, 3}}); };
  CHECK_THAT(error_of([](Store& store) { store.end_iteration(); }), Contains("has no keys"));
  CHECK_THAT(error_of([&](Store& store) { init(store), init(store); }),
             Contains("init of key \"w\": it is initialised already"));
  CHECK_THAT(error_of([&](Store& store) {
               init(store);
               store.pull("v", {x, {2, 3}});
             }),
             Contains("pull of key \"v\": it was not initialised; call init()"));
  CHECK_THAT(error_of([&](Store& store) {
               init(store);
               store.push("w", {x, {3, 2}});
             }),
             Contains("push of key \"w\": its shape is 2x3, not 3x2"));
  CHECK_THAT(error_of([&](Store& store) {
               init(store);
               store.end_iteration();
               store.init("v", {x, {1}});
             }),
             Contains("the first iteration has begun"));
  CHECK_THAT(error_of([&](Store& store) {
               store.init("w", {x, {store.rank() + 1}});
               store.end_iteration();
             }),
             Contains("worker 1 has initialised key \"w\" with the shape 2, worker 0 with 1"));
  CHECK_THAT(error_of([&](Store& store) {
               store.init("w", {x, {0, 3}});
             }),
             Contains("the shape 0x3 is empty"));
  CHECK_THAT(error_of([&](Store& store) {
               init(store);
               store.next_range();
             }),
             Contains("next_range: the run has no samples to lease"));
  // Loops that end before their first iteration.
  CHECK_THAT(error_of([&](Store& store) {
               if (store.rank() == 0) init(store);
             }),
             Contains("worker 1 has not initialised key \"w\" of worker 0"));
  CHECK_THAT(error_of([](Store&) {}), Contains("has no keys"));
}

TEST_CASE("an exception of one loop ends its worker, and is thrown at the end") {
  float one = 1;
  const Loop loop = [&](Store& store) {
    store.init("w", {&one, {}});
    for (int i = 0; i < 5; ++i) {
      store.push("w", {&one, {}});
      store.end_iteration();
      if (store.rank() == 1) throw std::runtime_error("a fault of the user's");
    }
  };
  CHECK_THROWS_WITH(simulate(loop), "a fault of the user's");
  CHECK_THROWS_WITH(run(loop), "a fault of the user's");
}

TEST_CASE("loops of different lengths end, under each policy") {
  const auto policy = GENERATE(from_range(kPolicies));
  float one = 1;
  const Loop loop = [&](Store& store) {
    store.init("w", {&one, {}});
    for (std::uint32_t i = 0; i <= 4 * store.rank(); ++i) {
      store.push("w", {&one, {}});
      store.end_iteration();
    }
  };
  const Result result = simulate(loop, {.workers = 3, .consistency = policy});
  CHECK(result.error == "");
  CHECK(result.weight("w")[0] == 1 + 1 + 5 + 9);
}

TEST_CASE("a frozen worker, a lost shard and every policy with samples leave no sample out") {
  Options options = line_options();
  SECTION("a frozen worker is evicted and continues") {
    options.faults = {freezes(worker(1), at_seconds(0.03), 0.6)};
  }
  SECTION("a primary crashes, and its standby takes over") {
    options.replicas = 2;
    options.faults = {crashes(shard(0), at_seconds(0.03))};
  }
  SECTION("backup workers") {
    options.consistency = plan::Backup{1};
    options.stragglers = {slow(3, 5)};
  }
  SECTION("bsp") {
    options.consistency = plan::Bsp{};
  }
  SECTION("asp") {
    options.consistency = plan::Asp{};
  }
  const Result result = simulate(fit_line, options);
  CHECK(result.error == "");
  CHECK(result.samples_trained == 3000);
  CHECK(result.weight("line")[0] == Approx(3).margin(0.1));
}

TEST_CASE("thousands of small keys travel in groups, and each gets its own gradient") {
  constexpr int kKeys = 3000;
  const auto shape = [](int key) { return Shape{key % 3 + 1, key % 5 + 1}; };
  const Loop loop = [&](Store& store) {
    std::vector<float> values(15);
    for (int key = 0; key < kKeys; ++key) {
      std::fill(values.begin(), values.end(), static_cast<float>(key));
      store.init(key, {values.data(), shape(key)});
    }
    CHECK(store.keys().size() == kKeys);
    for (int round = 0; round < 3; ++round) {
      // Not all keys have a gradient in each iteration.
      for (int key = 0; key < kKeys; ++key) {
        if (key % 4 == round) continue;
        std::fill(values.begin(), values.end(), static_cast<float>(key % 7));
        store.push(key, {values.data(), shape(key)});
      }
      store.end_iteration();
    }
  };
  const Result result = simulate(loop, {.workers = 2, .consistency = plan::Bsp{}});
  REQUIRE(result.error == "");
  for (int key = 0; key < kKeys; ++key) {
    const int rounds = key % 4 < 3 ? 2 : 3;
    const auto values = result.weight(std::to_string(key));
    REQUIRE(values.size() == static_cast<std::size_t>(shape(key).count()));
    for (const float value : values)
      REQUIRE(value == static_cast<float>(key + 2 * rounds * (key % 7)));
  }
}

TEST_CASE("keys of a group without a push keep their values, also in blocks without any push") {
  // 257 scalars have two blocks, or 4 keys of 10 KiB one each.
  const auto [keys, floats] = GENERATE(table<int, std::int64_t>({{257, 1}, {4, 2560}}));
  const Loop loop = [keys = keys, floats = floats](Store& store) {
    std::vector<float> values(static_cast<std::size_t>(floats), 5.0f);
    for (int key = 0; key < keys; ++key) store.init(key, {values.data(), {floats}});
    for (int key : {1, keys - 1}) {
      store.push(key, {values.data(), {floats}});
      store.end_iteration();
    }
  };
  const Result result = simulate(loop, {.workers = 2});
  REQUIRE(result.error == "");
  for (int key = 0; key < keys; ++key)
    CHECK(result.weight(std::to_string(key))[0] == (key == 1 || key == keys - 1 ? 15 : 5));
}

TEST_CASE("assigned keys without a push keep their values") {
  const Loop loop = [](Store& store) {
    const float values[] = {1, 2};
    store.init("a", {&values[0], {}});
    store.init("b", {&values[1], {}});
    store.set_optimizer(assign_gradients());
    const float next = 7;
    if (store.rank() == 0) store.push("b", {&next, {}});
    store.end_iteration();
  };
  const Result result = simulate(loop, {.workers = 2, .consistency = plan::Bsp{}});
  CHECK(result.weight("a")[0] == 1);
  CHECK(result.weight("b")[0] == 7);
}

TEST_CASE("optimizers take the mean over the workers of a round") {
  float w = 10;
  const Loop loop = [&](Store& store) {
    store.init("w", {&w, {}});
    store.set_optimizer(momentum(0.5, 0.5));
    const float gradient = store.rank() == 0 ? 1 : 3;
    for (int i = 0; i < 2; ++i) {
      store.push("w", {&gradient, {}});
      store.end_iteration();
    }
  };
  // The velocity is 2, then 3; the steps are 1 and 1.5.
  CHECK(simulate(loop, {.workers = 2, .consistency = plan::Bsp{}}).weight("w")[0] == 7.5f);
}

TEST_CASE("assigned keys have the sum of the last round") {
  float w = 10;
  const Loop loop = [&](Store& store) {
    store.init("w", {&w, {}});
    store.set_optimizer(assign_gradients());
    for (int i = 1; i <= 3; ++i) {
      const auto gradient = static_cast<float>(i);
      store.push("w", {&gradient, {}});
      store.end_iteration();
    }
  };
  CHECK(simulate(loop, {.workers = 3, .consistency = plan::Bsp{}}).weight("w")[0] == 9);
}

TEST_CASE("handles are done when their pull or push is, and continue in order") {
  const Loop loop = [](Store& store) {
    std::vector<float> w(4, 1.0f), out(4, 0.0f);
    store.init("w", {w.data(), {4}});
    std::vector<int> order;
    Handle pull = store.pull("w", {out.data(), {4}});
    pull.then([&] { order.push_back(1); });
    CHECK_FALSE(pull.done());
    CHECK(out[0] == 0);
    Handle push = store.push("w", {w.data(), {4}});
    CHECK(pull.done());  // the pull comes first
    CHECK(out[0] == 1);
    push.then([&] { order.push_back(2); });
    CHECK_FALSE(push.done());
    w[0] = 5;  // push has copied
    push.wait();
    CHECK(push.done());
    push.then([&] { order.push_back(3); });
    CHECK(store.iterations() == 1);
    CHECK(order == std::vector{1, 2, 3});
    CHECK(store.view("w").floats()[0] == 2);
    CHECK(store.get("w") == std::vector<float>(4, 2.0f));
    CHECK(store.rank() == 0);
    CHECK(store.workers() == 1);
  };
  CHECK(simulate(loop, {.workers = 1}).error == "");
  CHECK(run(loop, {.workers = 1}).error == "");
}

TEST_CASE("a push is done without a wait when the shards have acknowledged it") {
  const auto policy = GENERATE(from_range(kPolicies));
  const Loop loop = [](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    const Handle push = store.push("w", {&one, {}});
    int calls = 0;
    Handle(push).then([&] { ++calls; });
    store.end_iteration();
    for (int i = 0; !push.done(); ++i) {
      if (i == 100000) throw std::runtime_error("the push is never done");
      store.compute(milliseconds(1));
      if (!push.done()) std::this_thread::yield();
    }
    store.end_iteration();
    if (calls != 1) throw std::runtime_error("not called once");
  };
  CHECK(simulate(loop, {.workers = 3, .consistency = policy}).error == "");
}

TEST_CASE("callbacks may call the store, and a push may take its gradient from a view") {
  const Loop loop = [](Store& store) {
    float one = 1;
    store.init("a", {&one, {}});
    store.init("b", {&one, {}});
    float a = 0, b = 0;
    store.pull("a", {&a, {}}).then([&] {
      store.push("a", {&a, {}});
      store.pull("b", {&b, {}});
    });
    store.push("b", {&one, {}});       // the pull is done before
    store.push("b", store.view("a"));  // ends the iteration
    store.end_iteration();
    if (store.get("a") != std::vector<float>{2}) throw std::runtime_error("wrong a");
    if (store.get("b") != std::vector<float>{4}) throw std::runtime_error("wrong b");
  };
  CHECK(simulate(loop, {.workers = 1}).error == "");
  CHECK(run(loop, {.workers = 1}).error == "");
}

TEST_CASE("a batch of pushes may take its gradients from views of the iteration that it ends") {
  const Loop loop = [](Store& store) {
    const std::vector<float> ones(1000, 1);
    store.init("a", {ones.data(), {1000}});
    store.init("b", {ones.data(), {1000}});
    store.push("b", {ones.data(), {1000}});
    const ConstView a = store.view("a");
    const std::pair<Key, ConstView> batch[] = {{"b", a}, {"a", a}};
    store.push(batch);
    store.end_iteration();
    if (store.get("a") != std::vector<float>(1000, 2)) throw std::runtime_error("wrong a");
    if (store.get("b") != std::vector<float>(1000, 3)) throw std::runtime_error("wrong b");
  };
  CHECK(simulate(loop, {.workers = 1}).error == "");
  CHECK(run(loop, {.workers = 1}).error == "");
}

TEST_CASE("in a simulation, one loop runs at a time, also while it ends") {
  std::atomic<int> running = 0;
  std::atomic<bool> together = false;
  Options options = line_options();
  options.faults = {crashes(worker(2), at_seconds(0.03), 0.02)};
  const auto busy = [&] {
    if (++running > 1) together = true;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --running;
  };
  const Loop loop = [&](Store& store) {
    float w[2] = {};
    busy();
    store.init("line", {w, {2}});
    while (store.next_range()) {
      busy();
      store.push("line", {w, {2}});
      busy();
    }
    busy();
  };
  CHECK(simulate(loop, options).samples_trained == 3000);
  CHECK_FALSE(together);
}

TEST_CASE("a push of a run with samples needs a range, and after the last one the loop is over") {
  std::string early, late;
  float one = 1;
  const auto error_of_push = [&](Store& store) -> std::string {
    try {
      store.push("w", {&one, {}});
      return "";
    } catch (const Ended& error) {
      return concat("ended: ", error.what());
    } catch (const StoreError& error) {
      return error.what();
    }
  };
  const Loop loop = [&](Store& store) {
    store.init("w", {&one, {}});
    early = error_of_push(store);
    while (store.next_range()) store.push("w", {&one, {}});
    late = error_of_push(store);
    CHECK_FALSE(store.next_range());
  };
  const Result result = simulate(loop, {.workers = 1, .samples = 64, .batch = 8});
  CHECK(result.error == "");
  CHECK(result.samples_trained == 64);
  CHECK(result.weight("w")[0] == 9);
  CHECK_THAT(early, Contains("this iteration has no range; call next_range()"));
  CHECK(late == "ended: the run has ended");
}

}  // namespace
}  // namespace leeway::kv
