// PushEncoder with gradients on a fake GPU, which computes with the processor's kernels: pushes
// have the same bytes as with gradients in host memory.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "actors/worker/push_encoder.hpp"
#include "kernels/executors.hpp"
#include "runtime/words.hpp"
#include "tests/support/fake_gpu.hpp"
#include "tests/support/recording_outbox.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

const std::vector<plan::Codec> kDense = {bf16(), fp16(), int8(), int4(), two_bit(0.4), one_bit()};

std::vector<std::byte> bytes_of(const Blob& blob) {
  REQUIRE(blob.device() == Device{});
  return {blob.bytes().begin(), blob.bytes().end()};
}

/// An encoder whose gradients lie on a fake GPU, and one whose gradients lie on the host.
struct Encoders {
  explicit Encoders(const Plan& plan) {
    auto data = load_data(plan.data, plan.seed);
    auto made =
        make_job(plan, std::move(*data),
                 {.executors = [this](Device device) -> Expected<std::shared_ptr<Executor>> {
                   if (device.kind != Device::Kind::cuda) return make_executor(device);
                   return std::shared_ptr<Executor>(make_fake_gpu(0, ++gpus));
                 }});
    REQUIRE(made);
    job = *made;
    on_gpu.emplace(job, WorkerId(0));
    on_host.emplace(job, WorkerId(0));
  }

  Blob gradient_of(BlockId block, std::int64_t iteration) {
    Rng rng(static_cast<std::uint64_t>(iteration));
    Blob gradient = Blob::floats(job->layout->block(block).floats);
    for (std::int64_t i = 0; i < job->layout->block(block).floats; ++i)
      gradient.mutable_floats()[i] = static_cast<float>(rng.uniform() - 0.4);
    zero_padding(job->layout->block(block), gradient.mutable_floats());
    return gradient;
  }
  /// Encodes the iteration's gradient with both encoders. With `is_held`, another holder keeps it.
  void push(BlockId block, std::int64_t iteration, float scale = 1, bool flushes = false,
            bool is_held = false) {
    const Iteration now(iteration);
    const Blob gradient = gradient_of(block, iteration);
    Blob there = worker->fetch(gradient);
    const Blob held = is_held ? there : Blob();
    const auto found =
        on_gpu->encode(block, Version(1), now, std::move(there), scale, out, flushes);
    const auto expected = on_host->encode(block, Version(1), now, gradient, scale, out, flushes);
    REQUIRE(found.codec == expected.codec);
    REQUIRE(bytes_of(found.data) == bytes_of(expected.data));
    if (is_held) REQUIRE(bytes_of(held.on_host()) == bytes_of(gradient));
    if (!flushes) return;
    Blob padded = Blob::copy_of(found.data.bytes());
    zero_padding(job->layout->block(block), padded.mutable_floats());
    REQUIRE(bytes_of(found.data) == bytes_of(padded));
  }
  void acknowledge(BlockId block, std::int64_t iteration, bool dropped) {
    for (auto* encoder : {&*on_gpu, &*on_host})
      encoder->acknowledged(block, Iteration(iteration), dropped);
  }
  /// Replaces the weights of the block's first slice.
  void assign(BlockId block, std::int64_t iteration) {
    const Blob values = gradient_of(block, iteration);
    std::vector<std::vector<std::byte>> pushed;
    for (auto* encoder : {&*on_gpu, &*on_host}) {
      const auto data =
          encoder->assign(block, Version(1), Iteration(iteration), values, {0}, 1, false, out);
      pushed.push_back(bytes_of(data.data));
    }
    REQUIRE(pushed[0] == pushed[1]);
  }

  std::uint64_t gpus = 0;
  std::shared_ptr<const Job> job;
  std::shared_ptr<Executor> worker = make_fake_gpu(0, 100);
  std::optional<PushEncoder> on_gpu, on_host;
  RecordingOutbox out;
};

Plan plan_with(const plan::Codec& push) {
  Plan plan = tiny_plan();
  plan.compress.push = push;
  return plan;
}

}  // namespace

TEST_CASE("pushes of a GPU's gradients have the bytes of the host's, for each codec and block") {
  auto codecs = kDense;
  codecs.insert(codecs.end(), {top_k(0.1), random_k(0.2)});
  for (const plan::Codec& codec : codecs) {
    Encoders encoders(plan_with(codec));
    for (const Block& block : encoders.job->layout->blocks()) {
      for (std::int64_t iteration = 0; iteration < 6; ++iteration)
        encoders.push(block.id, iteration, iteration % 2 == 0 ? 1 : 0.3f);
      encoders.push(block.id, 6, 1, false, true);
      encoders.push(block.id, 7, 0.5f, true);  // the residual in full
      encoders.push(block.id, 8);
    }
    // Only dense codecs run on the GPU.
    CHECK(encoders.gpus == (is_sparse(codec) ? 0 : 1));
  }
}

TEST_CASE("a dropped push of a GPU's gradients leaves the residual as it was before it") {
  for (const plan::Codec& codec : kDense) {
    Plan plan = plan_with(codec);
    plan.consistency = plan::Backup{1};
    Encoders encoders(plan);
    const BlockId block(0);
    for (std::int64_t iteration = 0; iteration < 4; ++iteration) {
      encoders.push(block, iteration);
      encoders.acknowledge(block, iteration, iteration % 2 == 1);
    }
    // Later pushes, and one in full, are encoded before the acknowledgements arrive.
    encoders.push(block, 4);
    encoders.push(block, 5);
    encoders.acknowledge(block, 4, true);
    encoders.push(block, 6, 1, true);
    encoders.acknowledge(block, 5, true);
    encoders.acknowledge(block, 6, false);
    encoders.push(block, 7);
    encoders.push(block, 8, 1, true);
  }
}

TEST_CASE("new weights on the host replace a residual on a GPU") {
  for (const plan::Codec& codec : kDense) {
    Encoders encoders(plan_with(codec));
    for (const Block& block : encoders.job->layout->blocks()) {
      encoders.push(block.id, 0);
      encoders.assign(block.id, 1);
      encoders.push(block.id, 2);
      encoders.push(block.id, 3, 1, true);
    }
  }
}

}  // namespace leeway::test
