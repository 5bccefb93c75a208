// Workers and shards on fake GPUs. A FakeGpu is asynchronous and has its own memory, so code that
// does not order queues, or confuses devices, gets other weights than the processor.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/executors.hpp"
#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/fake_gpu.hpp"
#include "tests/support/images.hpp"
#include "tests/support/text_task.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

constexpr int kFirstFake = 90;

/// Makes executors on the processor and on fake GPUs, and counts the GPUs.
struct Devices {
  ExecutorFactory factory() {
    return [this](Device device) -> Expected<std::shared_ptr<Executor>> {
      if (device.kind != Device::Kind::cuda) return make_executor(device);
      return std::shared_ptr<Executor>(make_fake_gpu(device.index - kFirstFake, ++gpus));
    };
  }
  std::uint64_t gpus = 0;
};

std::shared_ptr<const Job> job_on(const Plan& plan, Devices& devices) {
  auto data = load_data(plan.data, plan.seed);
  REQUIRE(data);
  auto job = make_job(plan, std::move(*data), {.executors = devices.factory()});
  INFO((job ? std::string() : job.error().text));
  REQUIRE(job);
  return *job;
}

std::vector<float> train(const Plan& plan, const std::string& device, std::uint64_t interleaving) {
  Plan placed = plan;
  placed.device = device;
  Devices devices;
  const auto job = job_on(placed, devices);
  TestHost host(job, interleaving);
  const auto weights = floats_of(host.run().weights);
  CHECK((devices.gpus > 0) == (device != "cpu"));
  return weights;
}

/// 3x4x4 images and all layers that depend on the order of a queue: packed weights, kept positions
/// of max pooling, statistics, masks, a sum of two branches.
Plan image_plan() {
  Plan plan = tiny_plan();
  plan.data =
      images_of("device images", plan::Synthetic{48, 12, plan::Clusters{3, 48, 3}}, {3, 4, 4});
  plan.model = {plan::Conv2d{.outputs = 6, .padding = 1},
                plan::BatchNorm{},
                plan::Residual{{plan::Conv2d{.outputs = 6, .padding = 1}, plan::Gelu{}}, {}},
                plan::Relu{},
                plan::MaxPool2d{},
                plan::Flatten{},
                plan::Dropout{0.25},
                plan::Linear{12},
                plan::LayerNorm{},
                plan::Linear{3}};
  plan.optimizer = {0.05, 1e-3, plan::Adam{}};
  plan.consistency = plan::Bsp{};
  return plan;
}

Plan in(const std::string& precision, Plan plan) {
  plan.precision = precision;
  return plan;
}

const std::vector<std::string> kPlacements = {
    "cuda:90",
    "workers=cuda:90",
    "shards=cuda:90",
    "worker0=cuda:90,worker1=cpu,worker2=cuda:91,shards=cuda:91",
    "worker1=cuda:90,shard0=cuda:91",
};

/// Placements of two pipelines of two stages: neighbours on the same GPU, on two GPUs, and on a GPU
/// and the processor.
const std::vector<std::string> kStagePlacements = {
    "cuda:90",
    "workers=cuda:90,worker1=cuda:91,worker3=cuda:91",
    "worker0=cuda:90,worker3=cuda:90",
    "worker1=cuda:91,worker2=cuda:90,shards=cuda:91",
};

}  // namespace

TEST_CASE("the devices of workers and shards do not change the weights") {
  for (Plan plan : {tiny_plan(), image_plan(), text_plan(), in("bf16", image_plan()),
                    in("bf16", text_plan()), in("fp16", image_plan())}) {
    plan.consistency = plan::Bsp{};
    for (const bool divided : {false, true}) {
      plan.batch = divided ? 4 : 2;
      plan.micro_batches = divided ? 2 : 1;
      const auto on_processor = train(plan, "cpu", 1);
      REQUIRE_FALSE(on_processor.empty());
      for (const auto& device : kPlacements) {
        INFO(device << (divided ? ", micro-batches" : ""));
        CHECK(same_bits(train(plan, device, 2), on_processor));
      }
    }
  }
}

TEST_CASE("the devices of stages do not change the weights") {
  for (Plan plan : {tiny_plan(), image_plan(), text_plan(), in("bf16", text_plan())}) {
    plan.consistency = plan::Bsp{};
    plan.pipeline.stages = 2;
    plan.workers = 4;
    plan.batch = 4;
    plan.micro_batches = 2;
    for (const char* schedule : {"1f1b", "zb_h1", "zb_v"}) {
      plan.pipeline.schedule = schedule;
      plan.pipeline.chunks = static_cast<std::uint32_t>(pipeline::usual_chunks(schedule));
      plan.pipeline.recompute.clear();
      if (plan.pipeline.schedule == "1f1b") plan.pipeline.recompute = {0};
      const auto on_processor = train(plan, "cpu", 1);
      REQUIRE_FALSE(on_processor.empty());
      for (const auto& device : kStagePlacements) {
        INFO(device << ", " << schedule);
        CHECK(same_bits(train(plan, device, 2), on_processor));
      }
    }
  }
}

TEST_CASE("a stage on a GPU trains with the weight versions of its schedule's table") {
  Plan plan = in("bf16", image_plan());
  plan.consistency = plan::Ssp{3};
  plan.pipeline.stages = 3;
  plan.workers = 3;
  plan.batch = 4;
  plan.micro_batches = 2;
  plan.pipeline.predict_weights = GENERATE(false, true);
  for (const char* schedule : {"weight_stashing", "2bw"}) {
    plan.pipeline.schedule = schedule;
    INFO(schedule << (plan.pipeline.predict_weights ? " with prediction" : ""));
    // A single pipeline reads the versions of its table, at any timing of messages.
    const auto on_processor = train(plan, "cpu", 1);
    for (std::uint64_t i = 2; i < 8; ++i) CHECK(same_bits(train(plan, "cpu", i), on_processor));
    for (const std::string device :
         {"cuda:90", "worker0=cuda:90,worker1=cpu,worker2=cuda:91,shards=cuda:90"})
      CHECK(same_bits(train(plan, device, 2), on_processor));
  }
}

TEST_CASE("under ssp a run with prefetch on GPUs finishes with finite weights") {
  Plan plan = image_plan();
  plan.consistency = plan::Ssp{2};
  plan.prefetch = true;
  plan.device = "worker0=cuda:90,worker1=cpu,worker2=cuda:90,shards=cuda:90";
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Devices devices;
    const auto job = job_on(plan, devices);
    TestHost host(job, seed);
    const RunTotals totals = host.run();
    CHECK(totals.end.reason == msg::RunEnded::Reason::finished);
    for (const float weight : floats_of(totals.weights)) REQUIRE(std::isfinite(weight));
  }
}

TEST_CASE("a loss that is not finite is detected on a GPU too") {
  Plan plan = tiny_plan();
  plan.optimizer.learning_rate = 1e18;
  plan.device = "cuda:90";
  Devices devices;
  const auto job = job_on(plan, devices);
  const RunTotals totals = TestHost(job, 1).run();
  CHECK(totals.end.reason == msg::RunEnded::Reason::failed);
  CHECK(totals.end.text.find("layer") != std::string::npos);
}

TEST_CASE("codecs encode arrays on GPUs, and runs get the weights of the processor to rounding") {
  for (const plan::Codec& push : {plan::Codec{plan::Int8{}}, plan::Codec{plan::OneBit{}}}) {
    Plan plan = image_plan();
    plan.optimizer = {0.01, 0, plan::Sgd{}};
    plan.compress = {push, plan::Bf16{}};
    const auto on_processor = train(plan, "cpu", 1);
    REQUIRE_FALSE(on_processor.empty());
    for (const auto& device : kPlacements) {
      INFO(device);
      const auto weights = train(plan, device, 2);
      REQUIRE(weights.size() == on_processor.size());
      for (std::size_t i = 0; i < weights.size(); ++i)
        CHECK(std::abs(weights[i] - on_processor[i]) < 1e-2 * (1 + std::abs(on_processor[i])));
    }
  }
}

TEST_CASE("a missing device is refused before the run starts") {
  Plan plan = tiny_plan();
  plan.device = "worker1=cuda:77";
  auto data = load_data(plan.data, plan.seed);
  const auto job = make_job(plan, std::move(*data));
  REQUIRE_FALSE(job);
  CHECK(job.error().text.find("--device cpu") != std::string::npos);
}

}  // namespace leeway::test
