// Under bsp, a loop by hand gives the weights of a scenario with the same model, bit for bit.
#include <algorithm>
#include <catch2/catch.hpp>

#include "kv.hpp"

namespace leeway::kv {
namespace {

/// x is -1, 0 or 1, and y = 3x + 2: with the steps below, floats compute all gradients exactly, so
/// that their bits do not depend on the order of the samples.
float x_of(std::int64_t sample) {
  return static_cast<float>(sample % 3 - 1);
}
float y_of(std::int64_t sample) {
  return 3 * x_of(sample) + 2;
}

class Line final : public Dataset {
 public:
  std::int64_t size() const override { return 48; }
  Shape sample_shape() const override { return {1}; }
  int classes() const override { return 0; }
  std::int64_t target_count() const override { return 1; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t*,
              float* targets) const override {
    std::ranges::transform(samples, x, x_of);
    std::ranges::transform(samples, targets, y_of);
  }
};

constexpr double kRate = 0.25;
constexpr std::uint32_t kBatch = 4;

Plan scenario() {
  register_data("line", [](std::uint64_t) -> Expected<TrainTest> {
    return TrainTest{std::make_shared<Line>(), std::make_shared<Line>()};
  });
  Plan plan;
  plan.data = plan::CustomData{"line"};
  plan.model = {plan::Linear{.outputs = 1, .init = plan::Init::zeros}};
  plan.loss = plan::Loss::mean_squared_error;
  plan.optimizer = sgd(kRate);
  plan.consistency = plan::Bsp{};
  plan.workers = 2;
  plan.shards = 1;
  plan.batch = kBatch;
  plan.stop.epochs = 1;
  return plan;
}

void by_hand(Store& store) {
  float w = 0, b = 0;
  store.init("w", {&w, {1, 1}});
  store.init("b", {&b, {1}});
  store.set_optimizer(sgd(kRate));
  while (const auto range = store.next_range()) {
    store.pull("w", {&w, {1, 1}}).wait();
    store.pull("b", {&b, {1}}).wait();
    float dw = 0, db = 0;
    for (const std::int64_t sample : range->samples) {
      const float step = 2 * (w * x_of(sample) + b - y_of(sample)) / kBatch;
      dw += step * x_of(sample);
      db += step;
    }
    store.push("w", {&dw, {1, 1}});
    store.push("b", {&db, {1}});
  }
}

TEST_CASE("under bsp, a loop by hand gives the bits of a scenario") {
  const Result trained = leeway::run(scenario(), {.quiet = true});
  REQUIRE(trained.error == "");
  const Options options{.workers = 2,
                        .shards = 1,
                        .consistency = plan::Bsp{},
                        .samples = 48,
                        .batch = kBatch,
                        .epochs = 1};
  for (const Result& result : {run(by_hand, options), simulate(by_hand, options)}) {
    REQUIRE(result.error == "");
    CHECK(result.weight("w")[0] == trained.weight("0.weight")[0]);
    CHECK(result.weight("b")[0] == trained.weight("0.bias")[0]);
  }
  CHECK(trained.weight("0.weight")[0] > 1);  // it has learned
}

}  // namespace
}  // namespace leeway::kv
