// How keys change: set(), updaters of the program, and gradients in the store's memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/text.hpp"
#include "kv.hpp"

namespace leeway::kv {
namespace {

using Catch::Matchers::Contains;

const std::vector<plan::Consistency> kPolicies = {plan::Bsp{}, plan::Asp{}, plan::Ssp{2},
                                                  plan::Adaptive{1, 4}};

Result run_or_simulate(const Loop& loop, const Options& options) {
  const bool simulated = GENERATE(false, true);
  CAPTURE(simulated);
  return simulated ? simulate(loop, options) : run(loop, options);
}

/// For loops on several threads, as checks of Catch are for one: kv::run() throws the error again.
void expect(float found, float expected) {
  if (found != expected) throw std::runtime_error(concat(found, " instead of ", expected));
}

/// Runs the loop on a local store, and on one worker of a run.
void alone(const std::function<void(Store&)>& loop) {
  Store local = Store::create("local");
  loop(local);
  const Result result = run(loop, {.workers = 1, .consistency = plan::Bsp{}});
  CHECK(result.error == "");
}

TEST_CASE("a delay policy applies to the pushes of a store: fed_buff collects four for a step") {
  const Loop loop = [](Store& store) {
    float w = 0;
    store.init("w", {&w, {}});
    plan::Optimizer optimizer = sgd(1);
    optimizer.whole_steps = true;
    store.set_optimizer(optimizer);
    for (int push = 1; push <= 8; ++push) {
      const auto gradient = static_cast<float>(push);
      store.push("w", {&gradient, {}}).wait();
      store.pull("w", {&w, {}}).wait();
      expect(w, push < 4 ? 0 : push < 8 ? -2.5f : -9);
    }
  };
  const Result result = run_or_simulate(
      loop, {.workers = 1, .consistency = plan::Asp{}, .delay_policy = fed_buff(4, 0)});
  CHECK(result.error == "");
}

// ---- set ----

TEST_CASE("set replaces a key's weights, and no others") {
  const Shape large{300, 100}, small{5};
  alone([&](Store& store) {
    const std::vector<float> ones(static_cast<std::size_t>(large.count()), 1.0f);
    std::vector<float> rising(ones.size());
    std::iota(rising.begin(), rising.end(), 0.0f);
    for (const char* key : {"a", "b", "c"}) store.init(key, {ones.data(), small});
    store.init("large", {ones.data(), large});
    store.init("other", {ones.data(), large});
    store.set("b", {rising.data(), small});
    store.set("large", {rising.data(), large}).wait();
    CHECK(store.get("large") == rising);
    CHECK(store.get("b") == std::vector<float>{0, 1, 2, 3, 4});
    for (const char* key : {"a", "c"}) CHECK(store.get(key) == std::vector<float>(5, 1.0f));
    CHECK(store.get("other") == ones);
    store.push("b", {ones.data(), small});  // adds
    CHECK(store.get("b") == std::vector<float>{1, 2, 3, 4, 5});
  });
}

TEST_CASE("in a round, gradients come before the new weights of the last worker") {
  const Result result = run_or_simulate(
      [](Store& store) {
        float zero = 0, one = 1, value = 10 * static_cast<float>(store.rank());
        for (const char* key : {"w", "only pushed"}) store.init(key, {&zero, {}});
        store.push("only pushed", {&one, {}});
        if (store.rank() == 0)
          store.push("w", {&one, {}});
        else
          store.set("w", {&value, {}});
        store.end_iteration();
        expect(store.get("w")[0], 20);
        store.push("w", {&one, {}});
        store.end_iteration();
        expect(store.get("w")[0], 23);
        expect(store.get("only pushed")[0], 3);
      },
      {.workers = 3, .consistency = plan::Bsp{}});
  CHECK(result.error == "");
}

TEST_CASE("set leaves the state of the optimizer") {
  const auto loop = [](Store& store, std::vector<float>& found) {
    const float zero = 0, one = 1, ten = 10;
    const std::vector<float> large(5000, 1.0f);
    store.init("large", {large.data(), {5000}});
    store.init("small", {&zero, {}});
    store.set_optimizer(momentum(0.1));
    for (int i = 0; i < 3; ++i) {
      store.push("large", {large.data(), {5000}});
      store.end_iteration();
    }
    const std::vector<float> tens(5000, ten);
    store.set("large", {tens.data(), {5000}});
    store.push("small", {&one, {}});
    store.end_iteration();
    store.push("large", {large.data(), {5000}});
    found = {store.get("large")[0], store.get("small")[0]};
  };
  std::vector<float> of_local, of_run;
  Store local = Store::create("local");
  loop(local, of_local);
  const Result result =
      run([&](Store& store) { loop(store, of_run); }, {.workers = 1, .consistency = plan::Bsp{}});
  CHECK(result.error == "");
  CHECK(of_local == of_run);
  CHECK(of_local[0] < 10 - 0.1f);  // the velocity of the first pushes
}

TEST_CASE("the new weights of a key that is split over shards arrive whole") {
  const auto policy = GENERATE(from_range(kPolicies));
  const Shape big{1200, 1100};
  const Result result = run_or_simulate(
      [&](Store& store) {
        std::vector<float> values(static_cast<std::size_t>(big.count()), 0.0f);
        store.init("big", {values.data(), big});
        store.set_optimizer(adam(0.1));
        if (store.rank() == 0) {
          std::iota(values.begin(), values.end(), 1.0f);
          store.set("big", {values.data(), big}).wait();
        }
        store.barrier();
        const auto found = store.get("big");
        for (std::size_t i = 0; i < found.size(); i += 997)
          expect(found[i], static_cast<float>(i + 1));
      },
      {.workers = 2, .shards = 3, .consistency = policy});
  CHECK(result.error == "");
}

// ---- updaters ----

void keep_largest(const UpdaterCall& call) {
  for (std::size_t i = 0; i < call.weights.size(); ++i)
    call.weights[i] = std::max(call.weights[i], call.gradient[i]);
}

TEST_CASE("an updater of the program gets the sum of a round, or each push") {
  register_updater("keep largest", keep_largest);
  const bool by_rounds = GENERATE(true, false);
  const Shape big{1200, 1100};
  const plan::Consistency policy =
      by_rounds ? plan::Consistency(plan::Bsp{}) : plan::Consistency(plan::Ssp{2});
  const Result result = run_or_simulate(
      [&](Store& store) {
        const std::vector<float> zeros(static_cast<std::size_t>(big.count()), 0.0f);
        const std::vector<float> values(zeros.size(), static_cast<float>(store.rank() + 1));
        store.init("big", {zeros.data(), big});
        for (const char* key : {"a", "b", "never pushed"}) store.init(key, {zeros.data(), {3}});
        store.set_updater("keep largest");
        store.push("big", {values.data(), big});
        store.push("a", {values.data(), {3}});
        if (store.rank() == 1) store.push("b", {values.data(), {3}});
        store.end_iteration();
      },
      {.workers = 3, .consistency = policy});
  REQUIRE(result.error == "");
  const float largest = by_rounds ? 6 : 3;
  const auto is = [](float expected) { return [=](float value) { return value == expected; }; };
  CHECK(std::ranges::all_of(result.weight("big"), is(largest)));
  CHECK(std::ranges::all_of(result.weight("a"), is(largest)));
  CHECK(std::ranges::all_of(result.weight("b"), is(2)));
  CHECK(std::ranges::all_of(result.weight("never pushed"), is(0)));
}

TEST_CASE("an updater knows the key, and the place of the floats in it") {
  const Shape big{1200, 1100};
  register_updater("number", [](const UpdaterCall& call) {
    const float base = call.key == "big" ? 0 : 1000;
    for (std::size_t i = 0; i < call.weights.size(); ++i)
      call.weights[i] = base + static_cast<float>(call.first) + static_cast<float>(i);
  });
  alone([&](Store& store) {
    const std::vector<float> zeros(static_cast<std::size_t>(big.count()), 0.0f);
    store.init("big", {zeros.data(), big});
    store.init("small", {zeros.data(), {3}});
    store.set_updater("number");
    store.push("big", {zeros.data(), big});
    store.push("small", {zeros.data(), {3}});
    const auto found = store.get("big");
    for (std::size_t i = 0; i < found.size(); i += 997) CHECK(found[i] == static_cast<float>(i));
    CHECK(store.get("small") == std::vector<float>{1000, 1001, 1002});
  });
}

TEST_CASE("an updater that is not registered is refused with the names that are") {
  register_updater("keep largest", keep_largest);
  const auto loop = [](Store& store) {
    float zero = 0;
    store.init("w", {&zero, {}});
    store.set_updater("keep smallest");
    store.end_iteration();
  };
  CHECK_THAT(run(loop, {.workers = 1}).error,
             Contains("\"keep smallest\" is not registered") && Contains("keep largest"));
  Store local = Store::create("local");
  CHECK_THROWS_WITH(loop(local), Contains("keep largest"));
}

TEST_CASE("a norm over all keys is refused where pushes have none") {
  const auto loop = [](Store& store) {
    float zero = 0;
    store.init("w", {&zero, {}});
    plan::Optimizer clipped = sgd(0.1);
    clipped.clip_norm = 1;
    store.set_optimizer(clipped);
    store.push("w", {&zero, {}});
  };
  CHECK_THAT(run(loop, {.workers = 1, .consistency = plan::Asp{}}).error,
             Contains("optimizer.clip_norm"));
  CHECK(run(loop, {.workers = 1, .consistency = plan::Bsp{}}).error == "");
}

// ---- memory of the store ----

TEST_CASE("a gradient in the store's memory is pushed, and others of its group are zero") {
  const Shape large{100, 60};
  alone([&](Store& store) {
    const std::vector<float> ones(static_cast<std::size_t>(large.count()), 1.0f);
    for (const int key : {1, 2, 3}) store.init(key, {ones.data(), {5}});
    store.init("large", {ones.data(), large});
    for (int round = 1; round <= 3; ++round) {
      const View gradient = store.gradient("large"), small = store.gradient(2);
      const View unused = store.gradient(3);
      REQUIRE(gradient.shape == large);
      std::fill_n(gradient.floats(), large.count(), 2.0f);
      std::fill_n(small.floats(), 5, 3.0f);
      std::fill_n(unused.floats(), 5, 99.0f);
      store.push("large");
      store.push(2);
      store.end_iteration();
      CHECK(store.get("large") ==
            std::vector<float>(ones.size(), 1 + 2 * static_cast<float>(round)));
      CHECK(store.get("2") == std::vector<float>(5, 1 + 3 * static_cast<float>(round)));
      for (const int key : {1, 3}) CHECK(store.get(key) == std::vector<float>(5, 1.0f));
      store.end_iteration();
    }
  });
}

TEST_CASE("a push without a gradient is refused") {
  alone([](Store& store) {
    float zero = 0;
    store.init("w", {&zero, {}});
    CHECK_THROWS_WITH(store.push("w"), Contains("gradient()"));
    *store.gradient("w").floats() = 1;
    store.push("w");
    CHECK_THROWS_WITH(store.push("w"), Contains("gradient()"));
    *store.gradient("w").floats() = 1;
    store.end_iteration();
    CHECK_THROWS_WITH(store.push("w"), Contains("gradient()"));
    CHECK_THROWS_WITH(store.push("v"), Contains("not initialised"));
  });
}

TEST_CASE("a call with several keys is in one iteration") {
  alone([](Store& store) {
    const float one = 1;
    float a = 0, b = 0;
    for (const char* key : {"a", "b"}) store.init(key, {&one, {}});
    store.push("b", {&one, {}});
    const std::vector<std::pair<Key, View>> outs = {{"a", {&a, {}}}, {"b", {&b, {}}}};
    const auto before = store.iterations();
    store.pull(outs).wait();
    CHECK(store.iterations() == before + 1);
    CHECK(a == 1);
    CHECK(b == 2);
  });
}

TEST_CASE("the iteration of an abandoned store does not count") {
  const Result result = run_or_simulate(
      [](Store& store) {
        const float zero = 0, one = 1;
        store.init("w", {&zero, {}});
        store.init("other", {&zero, {}});
        for (int i = 0; i < 5; ++i) {
          store.push("w", {&one, {}});
          if (store.rank() == 1 && i == 2) return store.abandon();
          store.end_iteration();
        }
      },
      {.workers = 2, .consistency = plan::Ssp{3}});
  CHECK(result.error == "");
  CHECK(result.weight("w")[0] == 7);
}

TEST_CASE("several keys are pushed and pulled in one call, and integers equal their texts") {
  alone([](Store& store) {
    std::vector<float> values(200, 0.0f), found(200);
    std::vector<std::pair<Key, ConstView>> gradients;
    std::vector<std::pair<Key, View>> outs;
    for (int key = -100; key < 100; ++key) {
      const auto place = static_cast<std::size_t>(key + 100);
      store.init(std::to_string(key), {&values[place], {}});
      values[place] = static_cast<float>(key);
      gradients.push_back({key, {&values[place], {}}});
      outs.push_back({key, {&found[place], {}}});
    }
    store.push(gradients);
    store.end_iteration();
    int calls = 0;
    const Handle handle = store.pull(outs);
    Handle(handle).then([&] { ++calls; });
    Handle(handle).wait();
    CHECK(handle.done());
    CHECK(calls == 1);
    CHECK(found == values);
    CHECK(store.get("-7") == store.get(-7));
    CHECK_THROWS_WITH(store.get("007"), Contains("not initialised"));
    CHECK_THROWS_WITH(store.get(100), Contains("not initialised"));
  });
}

}  // namespace
}  // namespace leeway::kv
