// ComputeWork: a single work for all operations of an iteration equals one work per operation.
#include "actors/worker/compute_work.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/rng.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

using pipeline::OpKind;

constexpr std::int64_t kSamples = 7, kMicroBatches = 3;

std::shared_ptr<const Job> worker_job(bool cost_only = false) {
  Plan plan = tiny_plan();
  plan.workers = 1;
  plan.batch = kSamples;
  plan.micro_batches = kMicroBatches;
  if (cost_only) plan.simulated = plan::World{.cost_only = true};
  return job_of(plan);
}

std::shared_ptr<DeviceWeights> weights_of(const std::shared_ptr<const Job>& job, float scale = 1) {
  PulledWeights pulled;
  Rng rng(3);
  for (const Block& block : job->layout->blocks()) {
    Blob blob = Blob::floats(block.floats);
    for (std::int64_t i = 0; i < block.floats; ++i)
      blob.mutable_floats()[i] = scale * static_cast<float>(rng.uniform() - 0.5);
    pulled.blobs.push_back(std::move(blob));
    pulled.versions.emplace_back(1);
  }
  return std::make_shared<DeviceWeights>(job, std::move(pulled));
}

std::vector<ComputeWork::Operation> operations_of(const Job& job,
                                                  const std::shared_ptr<DeviceWeights>& weights) {
  const LeasedIteration leased{Epoch(0), 5, 5 + kSamples, kSamples, {}};
  std::vector<ComputeWork::Operation> operations;
  for (std::int64_t i = 0; i < kMicroBatches; ++i) {
    const auto micro_batch = make_micro_batch(job, leased, i, kMicroBatches, weights, Iteration(2));
    operations.push_back({OpKind::forward, 0, micro_batch, {}});
    operations.push_back({OpKind::backward, 0, micro_batch, {}});
  }
  return operations;
}

ComputeWork::Task whole_task(std::vector<ComputeWork::Operation> operations) {
  return {.operations = std::move(operations),
          .samples = kSamples,
          .micro_batches = kMicroBatches,
          .opens = true,
          .begins = true,
          .ends = true,
          .releases = true};
}

void run(ComputeWork& work) {
  for (int part = 0; part < work.parts(); ++part) work.run(part);
}

std::vector<Blob> gradients_of(const Job& job, ComputeWork& work) {
  std::vector<Blob> gradients;
  for (const Block& block : job.layout->blocks()) gradients.push_back(work.take_gradient(block.id));
  return gradients;
}

}  // namespace

TEST_CASE("the first part has all operations but the last; a simulator divides them evenly") {
  for (const bool simulated : {false, true}) {
    const auto job = worker_job(simulated);
    const WorkerId id(0);
    const auto engine = simulated ? nullptr : std::make_shared<ComputeEngine>(job, id);
    const ComputeWork whole(job, id, engine, whole_task(operations_of(*job, weights_of(job))));
    REQUIRE(whole.parts() == 3);
    // Micro-batches of 2, 2 and 3 samples; a backward is two thirds of the arithmetic.
    const double last = simulated ? 1 : 3.0 / 7 * 2 / 3;
    for (int part = 0; part < 3; ++part)
      CHECK(whole.share_done(part) == Approx(1 - last * (2 - part) / 3));
  }
}

TEST_CASE("a single work for an iteration gives the bits of one work per operation") {
  const auto job = worker_job();
  const WorkerId id(0);
  ComputeWork whole(job, id, std::make_shared<ComputeEngine>(job, id),
                    whole_task(operations_of(*job, weights_of(job))));
  run(whole);

  const auto engine = std::make_shared<ComputeEngine>(job, id);
  const auto weights = weights_of(job);
  const auto operations = operations_of(*job, weights);
  double loss = 0;
  std::int64_t correct = 0;
  std::vector<Blob> expected;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    ComputeWork work(job, id, engine,
                     {.operations = {operations[i]},
                      .samples = kSamples,
                      .micro_batches = kMicroBatches,
                      .begins = i == 1,
                      .ends = i + 1 == operations.size()});
    run(work);
    if (operations[i].kind == OpKind::forward) continue;
    const auto samples = static_cast<double>(operations[i].micro_batch->size());
    loss += work.result().loss * (samples / kSamples);
    correct += work.result().correct;
    if (i + 1 == operations.size()) expected = gradients_of(*job, work);
  }
  CHECK(whole.result().loss == loss);
  CHECK(whole.result().correct == correct);
  const auto got = gradients_of(*job, whole);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].size() == expected[i].size());
    CHECK(std::memcmp(got[i].data(), expected[i].data(), got[i].size()) == 0);
  }
}

TEST_CASE("an iteration has one part per layer with parameters, and releases its weights") {
  for (const bool cost_only : {false, true}) {
    const auto job = worker_job(cost_only);
    const WorkerId id(0);
    const auto weights = weights_of(job);
    ComputeWork work(job, id, cost_only ? nullptr : std::make_shared<ComputeEngine>(job, id),
                     whole_task(operations_of(*job, weights)));
    REQUIRE(work.parts() == 3);
    std::int64_t held = weights->bytes();
    for (int part = 0; part < 3; ++part) {
      work.run(part);
      CHECK(work.layers_of(part) == std::vector<int>{4 - 2 * part});
      CHECK(weights->bytes() < held);
      held = weights->bytes();
    }
    CHECK(held == 0);
  }
}

TEST_CASE("an iteration costs three forwards, and reads its samples in the first part") {
  const auto job = worker_job();
  const ComputeWork work(job, WorkerId(0), std::make_shared<ComputeEngine>(job, WorkerId(0)),
                         whole_task(operations_of(*job, weights_of(job))));
  const std::int64_t flops = 3 * job->model->flops_per_sample() * kSamples;
  CHECK(work.cost(0).flops == flops / 3);
  CHECK(work.cost(2).flops == flops / 3);
  CHECK(work.cost(0).bytes == kSamples * job->model->input().count() * 4);
  CHECK(work.cost(1).bytes == 0);
  CHECK_FALSE(work.continues_iteration());
}

/// By part: the memory traffic of codecs.
std::vector<std::int64_t> codec_bytes(const std::shared_ptr<const Job>& job) {
  const ComputeWork work(job, WorkerId(0), std::make_shared<ComputeEngine>(job, WorkerId(0)),
                         whole_task(operations_of(*job, weights_of(job))));
  std::vector<std::int64_t> bytes;
  for (int part = 0; part < work.parts(); ++part) bytes.push_back(work.cost(part).bytes_apart);
  return bytes;
}
std::int64_t floats_of(const Job& job) {
  std::int64_t floats = 0;
  for (const Block& block : job.layout->blocks()) floats += block.floats;
  return floats;
}

TEST_CASE("the encoding of gradients takes time after each layer") {
  Plan plan = worker_job()->plan;
  plan.compress.push = plan::Int8{};
  const auto job = job_of(plan);
  std::int64_t bytes = 0;
  for (const std::int64_t of_part : codec_bytes(job)) {
    CHECK(of_part > 0);
    bytes += of_part;
  }
  CHECK(bytes == floats_of(*job) * job->push_codecs->at(Iteration(0)).pushing_traffic());
}

TEST_CASE("the decoding of pulled weights takes time before an iteration") {
  Plan plan = worker_job()->plan;
  plan.compress.pull = plan::Bf16{};
  const auto job = job_of(plan);
  const auto bytes = codec_bytes(job);
  CHECK(bytes.at(0) == floats_of(*job) * job->pull_codec->decoding_traffic());
  CHECK(bytes.at(1) == 0);
}

TEST_CASE("the codecs between stages take time, but not at the ends of a pipeline") {
  Plan plan = worker_job(true)->plan;
  plan.workers = plan.pipeline.stages = 3;
  plan.compress.activations = plan::Int8{};
  plan.compress.activation_gradients = plan::Fp16{};
  const auto job = job_of(plan);
  const auto operations = operations_of(*job, weights_of(job));
  const auto cost = [&](std::uint32_t stage, const ComputeWork::Operation& op) {
    const ComputeWork work(job, WorkerId(stage), nullptr, {.operations = {op}});
    return work.cost(0).bytes_apart;
  };
  const auto floats = [&](std::uint32_t stage) {  // between this stage and the next
    const ModelChunk& chunk = job->stages->share(stage).chunks.at(0);
    return operations[0].micro_batch->size() * job->model->output_of(chunk.end - 1).count();
  };
  const Codec &activations = *job->activation_codec, &gradients = *job->activation_gradient_codec;
  const auto &forward = operations[0], &backward = operations[1];
  CHECK(cost(0, forward) == floats(0) * activations.encoding_traffic());
  CHECK(cost(1, forward) ==
        floats(0) * activations.decoding_traffic() + floats(1) * activations.encoding_traffic());
  CHECK(cost(2, forward) == floats(1) * activations.decoding_traffic());
  CHECK(cost(0, backward) == floats(0) * gradients.decoding_traffic());
  CHECK(cost(1, backward) ==
        floats(1) * gradients.decoding_traffic() + floats(0) * gradients.encoding_traffic());
  CHECK(cost(2, backward) == floats(1) * gradients.encoding_traffic());
}

TEST_CASE("a loss that is not finite stops the iteration, and the error names the layer") {
  const auto job = worker_job();
  const WorkerId id(0);
  ComputeWork work(job, id, std::make_shared<ComputeEngine>(job, id),
                   whole_task(operations_of(*job, weights_of(job, 1e30f))));
  run(work);
  CHECK_FALSE(std::isfinite(work.result().loss));
  CHECK_FALSE(work.diverged_layer().empty());
}

}  // namespace leeway::test
