// A convolutional network and a transformer, trained by workers and shards on a GPU, compared with
// the processor. Without a GPU the cases pass with a warning; ctest runs them on an emulated GPU.
#include <catch2/catch.hpp>

#include "kernels/executors.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/images.hpp"
#include "tests/support/test_host.hpp"
#include "tests/support/text_task.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// Three classes of 2x8x8 images, and every kind of layer of an image network.
Plan conv_plan() {
  Plan plan = tiny_plan();
  plan.data = images_of("cuda training images", plan::Synthetic{24, 12, plan::Clusters{3, 128, 3}},
                        {2, 8, 8});
  plan.model = {plan::Conv2d{.outputs = 8, .kernel = 3, .padding = 1, .bias = false},
                plan::BatchNorm{},
                plan::Relu{},
                plan::MaxPool2d{},
                plan::Residual{{plan::Conv2d{.outputs = 8, .kernel = 3, .padding = 1},
                                plan::BatchNorm{}, plan::Relu{}},
                               {plan::Conv2d{.outputs = 8, .kernel = 1, .groups = 2}}},
                plan::AvgPool2d{},
                plan::Flatten{},
                plan::Dropout{0.25},
                plan::Linear{.outputs = 6, .bias = false},
                plan::LayerNorm{},
                plan::Gelu{},
                plan::Linear{3}};
  plan.optimizer = {0.05, 1e-3, plan::Momentum{}};
  plan.consistency = plan::Bsp{};
  plan.workers = 2;
  plan.batch = 4;
  plan.evaluate_every = 1;
  return plan;
}

std::vector<float> trained(Plan plan, const std::string& device) {
  plan.device = device;
  TestHost host(job_of(plan), 1);
  return floats_of(host.run().weights);
}

/// Trains the plan on the processor, on the GPU, and on both; weights may differ by `tolerance`.
void compare(const Plan& plan, double tolerance = 1e-4) {
  if (const auto why = cuda_unavailable(); !why.empty()) {
    WARN("no GPU: " << why);
    return;
  }
  const auto expected = trained(plan, "cpu");
  REQUIRE_FALSE(expected.empty());
  for (const std::string device : {"cuda:0", "worker1=cuda:0,shard0=cuda:0"}) {
    const auto found = trained(plan, device);
    REQUIRE(found.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      REQUIRE(std::isfinite(found[i]));
      worst = std::max(worst, static_cast<double>(std::abs(found[i] - expected[i])));
    }
    CAPTURE(device);
    CHECK(worst < tolerance);
  }
}

}  // namespace

TEST_CASE("a convolutional network gets the same weights on a GPU as on the processor", "[cuda]") {
  compare(conv_plan());
}

TEST_CASE("a transformer gets the same weights on a GPU as on the processor", "[cuda]") {
  Plan plan = text_plan();
  plan.workers = 2;
  plan.batch = 4;
  plan.evaluate_every = 1;
  compare(plan);
}

TEST_CASE("networks in bf16 and fp16 get the same weights on a GPU as on the processor", "[cuda]") {
  const std::string precision = GENERATE("bf16", "fp16");
  INFO(precision);
  for (Plan plan : {conv_plan(), text_plan()}) {
    plan.precision = precision;
    plan.workers = 2;
    plan.batch = 4;
    compare(plan, 1e-2);  // sums that differ in their last bits can round to another operand
  }
}

TEST_CASE("local steps get the same weights on a GPU, on the processor, and on both", "[cuda]") {
  Plan plan = conv_plan();
  plan.local_steps = {3, {0.7, plan::Nesterov{}}};
  // Gradients that are 0 but for rounding make no steps with this epsilon.
  plan.optimizer = {0.01, 1e-3, plan::AdamW{.epsilon = 0.1}};
  plan.optimizer.clip_norm = 1;
  compare(plan);
  plan.optimizer = {0.05, 1e-3, plan::Momentum{}};
  plan.fine_tuning.freeze = "0";
  compare(plan);
}

TEST_CASE("with codecs, a GPU and the processor get the same weights, to codes", "[cuda]") {
  for (const plan::Codec& push : {plan::Codec{plan::Fp16{}}, plan::Codec{plan::Int8{}},
                                  plan::Codec{plan::Int4{}}, plan::Codec{plan::OneBit{}}}) {
    Plan plan = conv_plan();
    plan.optimizer = {0.01, 0, plan::Sgd{}};
    plan.compress.push = push;
    compare(plan, 2e-2);  // gradients that differ in their last bits can round to another code
  }
}

TEST_CASE("stages get the same weights on a GPU, on the processor, and on both", "[cuda]") {
  for (Plan plan : {conv_plan(), text_plan()}) {
    plan.workers = plan.pipeline.stages = 2;
    plan.batch = 4;
    plan.micro_batches = 2;
    for (const char* schedule : {"1f1b", "zb_h1"}) {
      plan.pipeline.schedule = schedule;
      compare(plan);
    }
  }
}

}  // namespace leeway::test
