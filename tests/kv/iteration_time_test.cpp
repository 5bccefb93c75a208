// Options::iteration_time: what simulated loops compute.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "kv.hpp"

namespace leeway::kv {
namespace {

/// One worker trains an epoch of 95 samples in ten iterations.
Options ten_iterations() {
  return {.workers = 1, .consistency = plan::Bsp{}, .samples = 95, .batch = 10};
}

void train(Store& store) {
  float one = 1;
  store.init("w", {&one, {}});
  while (store.next_range()) store.push("w", {&one, {}});
}

TEST_CASE("simulated iterations take their time, short ranges a share of it") {
  Options options = ten_iterations();
  const double without = simulate(train, options).seconds;
  options.iteration_time = milliseconds(10);
  const Result result = simulate(train, options);
  CHECK(result.seconds - without == Approx(0.095).margin(0.001));
  CHECK(computing_time(result).seconds() == Approx(0.01).margin(0.0001));
  options.stragglers = {slow(0, 3)};
  CHECK(simulate(train, options).seconds - without == Approx(3 * 0.095).margin(0.003));
}

TEST_CASE("iterations that are not computed take no time") {
  const Loop loop = [](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    while (store.iteration() < 3) {
      store.push("w", {&one, {}});
      store.end_iteration();
    }
    (void)store.get("w");
    store.barrier();
  };
  const Options options{.workers = 2, .iteration_time = milliseconds(100)};
  CHECK(simulate(loop, options).seconds == Approx(0.3).margin(0.02));
}

TEST_CASE("an iteration without samples takes the whole time, compute() more") {
  const Loop loop = [](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    for (int i = 0; i < 10; ++i) {
      store.push("w", {&one, {}});
      store.compute(milliseconds(2));
      store.end_iteration();
    }
  };
  const Options options{
      .workers = 1, .consistency = plan::Bsp{}, .iteration_time = milliseconds(5)};
  CHECK(simulate(loop, options).seconds == Approx(0.07).margin(0.005));
}

TEST_CASE("the computing time of real loops is measured") {
  const Loop loop = [](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    while (store.next_range()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      store.push("w", {&one, {}});
    }
  };
  CHECK(computing_time(run(loop, ten_iterations())).seconds() >= 0.003);
  CHECK(computing_time(Result{}).ns == 0);
}

TEST_CASE("a loop knows the virtual time of a simulation, and on threads gets 0") {
  Duration before, after;
  const Loop loop = [&](Store& store) {
    float one = 1;
    store.init("w", {&one, {}});
    store.push("w", {&one, {}}).wait();
    before = store.simulated_time();
    store.compute(milliseconds(5));
    after = store.simulated_time();
  };
  Options options{.workers = 1};
  options.world.noise = 0;
  REQUIRE(simulate(loop, options).error == "");
  CHECK(before > Duration{});
  CHECK((after - before).seconds() == Approx(0.005).epsilon(1e-5));
  REQUIRE(run(loop, options).error == "");
  CHECK(before == Duration{});
  CHECK(after == Duration{});
}

}  // namespace
}  // namespace leeway::kv
