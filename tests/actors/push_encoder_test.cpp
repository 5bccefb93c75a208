#include "actors/worker/push_encoder.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "policies/optimizer/shard_optimizer.hpp"
#include "runtime/words.hpp"
#include "tests/actors/shard_components.hpp"

namespace leeway::test {
namespace {

std::shared_ptr<const Job> job_with(plan::Codec push) {
  Plan plan = tiny_plan();
  plan.compress.push = push;
  return job_of(plan);
}

Blob gradient_of(const Job& job, BlockId block, std::uint64_t seed) {
  Rng rng(seed);
  const std::int64_t floats = job.layout->block(block).floats;
  Blob gradient = Blob::floats(floats);
  // Each element has its own mean, so that errors that are not fed back grow with each push.
  for (std::int64_t i = 0; i < floats; ++i)
    gradient.mutable_floats()[i] =
        static_cast<float>(rng.uniform() - 0.5 + 0.25 * static_cast<double>(i % 5 - 2));
  zero_padding(job.layout->block(block), gradient.mutable_floats());
  return gradient;
}

/// As a simulation with checkers.
class CheckedOutbox : public RecordingOutbox {
 public:
  bool is_checked() const override { return true; }
};

}  // namespace

TEST_CASE("a dense codec pushes the same bytes with checkers as without") {
  const auto codec = GENERATE(bf16(), fp16(), int8(), int4(), one_bit(), two_bit(0.4));
  const auto job = job_with(codec);
  PushEncoder checked(job, WorkerId(0)), unchecked(job, WorkerId(0));
  CheckedOutbox checkers;
  RecordingOutbox out;
  for (const Block& block : job->layout->blocks())
    for (std::int64_t iteration = 0; iteration < 12; ++iteration) {
      const float scale = iteration % 3 == 2 ? 0.3f : 1;
      const bool flushes = iteration == 9;
      const auto push = [&](PushEncoder& encoder, Outbox& outbox) {
        return encoder
            .encode(block.id, Version(1), Iteration(iteration),
                    gradient_of(*job, block.id, static_cast<std::uint64_t>(iteration)), scale,
                    outbox, flushes)
            .data;
      };
      const Blob expected = push(unchecked, out), found = push(checked, checkers);
      REQUIRE(std::ranges::equal(found.bytes(), expected.bytes()));
    }
}

TEST_CASE("decoded pushes and the residual sum up to the gradients, for each block") {
  using Case = std::pair<plan::Codec, double>;  // the largest residual of an element
  const auto [codec, most] =
      GENERATE(Case{int8(), 0.02}, Case{int4(), 0.2}, Case{one_bit(), 40}, Case{top_k(0.1), 40},
               Case{random_k(0.2), 40}, Case{two_bit(0.8), 40});
  const auto job = job_with(codec);
  PushEncoder encoder(job, WorkerId(0));
  RecordingOutbox out;
  for (const Block& block : job->layout->blocks()) {
    const auto count = static_cast<std::size_t>(block.floats);
    std::vector<double> given(count), received(count);
    for (std::int64_t iteration = 0; iteration < 400; ++iteration) {
      Blob gradient = gradient_of(*job, block.id, static_cast<std::uint64_t>(iteration));
      for (std::size_t i = 0; i < count; ++i) given[i] += gradient.as_floats()[i];
      const auto data =
          encoder.encode(block.id, Version(7), Iteration(iteration), std::move(gradient), 1, out);
      REQUIRE(data.codec == id_of(codec));
      REQUIRE(data.version == Version(7));
      REQUIRE(data.shape == Shape{block.floats});
      REQUIRE(job->push_codecs->at(Iteration(iteration)).check(data.data.bytes(), count));
      std::vector<float> values(count);
      job->push_codecs->at(Iteration(iteration)).decode(data.data.bytes(), values);
      zero_padding(block, values.data());  // as a shard does
      for (std::size_t i = 0; i < count; ++i) received[i] += values[i];
    }
    // The difference is the residual, which does not grow with the number of pushes.
    for (std::size_t i = 0; i < count; ++i) CHECK(std::abs(given[i] - received[i]) < most);
  }
}

TEST_CASE("with momentum, sparse pushes carry velocities, which start again when they are sent") {
  Plan plan = tiny_plan();
  plan.compress.push = top_k(0.1);
  plan.optimizer = {0.05, 0.01, plan::Momentum{0.5}};
  const auto job = job_of(plan);
  CHECK(job->optimizer->name() == "sgd");
  CHECK(shard_optimizer(plan).weight_decay == Approx(0.02));
  PushEncoder encoder(job, WorkerId(0));
  RecordingOutbox out;
  const Block& block = job->layout->block(BlockId(0));
  const auto count = static_cast<std::size_t>(block.floats);
  std::vector<float> velocity(count), collected(count);
  int sent = 0;
  for (std::int64_t iteration = 0; iteration < 50; ++iteration) {
    Blob gradient = gradient_of(*job, block.id, static_cast<std::uint64_t>(iteration));
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = gradient.as_floats()[i] + 0.5f * velocity[i];
      collected[i] += velocity[i];
    }
    const auto data =
        encoder.encode(block.id, Version(0), Iteration(iteration), std::move(gradient), 1, out);
    std::vector<float> values(count);
    job->push_codecs->at(Iteration(iteration)).decode(data.data.bytes(), values);
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i] == 0) continue;
      CHECK(values[i] == Approx(collected[i]));
      velocity[i] = collected[i] = 0;
      ++sent;
    }
  }
  CHECK(sent >= 50);
  // A flush sends the rest of both.
  Blob gradient = gradient_of(*job, block.id, 50);
  const auto last = encoder.encode(block.id, Version(0), Iteration(50), gradient, 1, out, true);
  CHECK(last.codec == CodecId::none);
  for (std::size_t i = 0; i < count; ++i)
    CHECK(last.data.as_floats()[i] ==
          Approx(collected[i] + gradient.as_floats()[i] + 0.5f * velocity[i]));
  const auto after = encoder.encode(block.id, Version(0), Iteration(51), gradient, 1, out, true);
  CHECK(std::equal(gradient.as_floats(), gradient.as_floats() + count, after.data.as_floats()));
  // Other codecs and optimizers leave the momentum to the shards.
  plan.compress.push = int8();
  CHECK(job_of(plan)->optimizer->name() == "momentum");
  plan.compress.push = top_k(0.1);
  plan.optimizer.kind = plan::Nesterov{};
  CHECK(job_of(plan)->optimizer->name() == "nesterov");
}

TEST_CASE("a dropped push leaves residual and velocity as they were before it") {
  Plan plan = tiny_plan();
  plan.consistency = plan::Backup{1};
  plan.compress.push = GENERATE(plan::Codec(top_k(0.1)), plan::Codec(int8()));
  plan.optimizer.kind = plan::Momentum{0.5};
  const auto job = job_of(plan);
  const BlockId block(0);
  RecordingOutbox out;
  const auto encode = [&](PushEncoder& encoder, std::int64_t iteration) {
    Blob gradient = gradient_of(*job, block, static_cast<std::uint64_t>(iteration));
    return encoder.encode(block, Version(0), Iteration(iteration), std::move(gradient), 1, out);
  };
  const auto bytes_of = [](const msg::BlockData& data) {
    const auto bytes = data.data.bytes();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  // The pushes of these iterations are dropped; the others are those of the second encoder.
  const std::set<std::int64_t> dropped = {0, 3, 4};
  PushEncoder encoder(job, WorkerId(0)), other(job, WorkerId(0));
  for (std::int64_t iteration = 0; iteration < 8; ++iteration) {
    const auto data = encode(encoder, iteration);
    encoder.acknowledged(block, Iteration(iteration), dropped.contains(iteration));
    if (!dropped.contains(iteration)) CHECK(bytes_of(data) == bytes_of(encode(other, iteration)));
  }
  // Also when the next push is encoded before the acknowledgement arrives.
  encode(encoder, 8);
  encode(encoder, 9);
  encoder.acknowledged(block, Iteration(8), true);
  encoder.acknowledged(block, Iteration(8), true);  // once
  encoder.acknowledged(block, Iteration(9), true);
  if (!is_sparse(plan.compress.push)) {  // whose velocities the later push has changed
    const Blob gradient = gradient_of(*job, block, 10);
    const auto rest = encoder.encode(block, Version(0), Iteration(10), gradient, 1, out, true);
    const auto expected = other.encode(block, Version(0), Iteration(10), gradient, 1, out, true);
    for (std::int64_t i = 0; i < job->layout->block(block).floats; ++i)
      CHECK(rest.data.as_floats()[i] == Approx(expected.data.as_floats()[i]).margin(1e-6));
  }
}

TEST_CASE("new weights of a slice replace its residual, and others send theirs in full") {
  Plan plan = tiny_plan();
  plan.compress.push = top_k(0.01);
  plan.optimizer.kind = plan::Momentum{0.5};
  const auto job = job_of(plan);
  const auto& blocks = job->layout->blocks();
  const auto with_two =
      std::ranges::find_if(blocks, [](const Block& block) { return block.slices.size() > 1; });
  REQUIRE(with_two != blocks.end());
  const Block& block = *with_two;
  const auto end = static_cast<std::size_t>(block.slices[1].offset);  // of slice 0, with padding
  const auto count = static_cast<std::size_t>(block.floats);
  PushEncoder encoder(job, WorkerId(0));
  RecordingOutbox out;
  std::vector<float> velocity(count), unsent(count);
  const auto next_gradient = [&](std::uint64_t iteration) {
    Blob gradient = gradient_of(*job, block.id, iteration);
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = 0.5f * velocity[i] + gradient.as_floats()[i];
      unsent[i] += velocity[i];
    }
    return gradient;
  };
  const auto encode = [&](std::int64_t iteration, Blob gradient) {
    const auto data =
        encoder.encode(block.id, Version(0), Iteration(iteration), std::move(gradient), 1, out);
    std::vector<float> sent(count);
    job->push_codecs->at(Iteration(iteration)).decode(data.data.bytes(), sent);
    for (std::size_t i = 0; i < count; ++i)
      if (sent[i] != 0) {
        CHECK(sent[i] == Approx(unsent[i]));
        velocity[i] = unsent[i] = 0;
      }
  };
  for (std::int64_t iteration = 0; iteration < 5; ++iteration)
    encode(iteration, next_gradient(static_cast<std::uint64_t>(iteration)));

  Blob values = gradient_of(*job, block.id, 5);
  for (std::size_t i = 0; i < count; ++i) {
    velocity[i] = 0.5f * velocity[i] + (i < end ? 0 : 2 * values.as_floats()[i]);
    unsent[i] += velocity[i];
  }
  const Blob given = values;  // a blob that others hold stays as it is
  const auto data =
      encoder.assign(block.id, Version(3), Iteration(5), std::move(values), {0}, 2, false, out);
  CHECK(data.codec == CodecId::none);
  CHECK(data.version == Version(3));
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(data.data.as_floats()[i] == Approx(i < end ? given.as_floats()[i] : unsent[i]));
    if (i >= end) velocity[i] = 0;  // it is sent
    unsent[i] = 0;
  }
  for (std::int64_t iteration = 6; iteration < 20; ++iteration)
    encode(iteration, next_gradient(static_cast<std::uint64_t>(iteration)));

  // Without gradients, only the residual of the slice goes.
  encoder.assign(block.id, Version(3), Iteration(20), Blob::floats(block.floats), {0}, 1, true,
                 out);
  std::fill_n(unsent.begin(), end, 0.0f);
  for (std::int64_t iteration = 21; iteration < 40; ++iteration)
    encode(iteration, next_gradient(static_cast<std::uint64_t>(iteration)));
}

TEST_CASE("with a codec, norms are limited before residuals are added") {
  Plan plan = tiny_plan();
  plan.optimizer.clip_norm = 0.5;
  plan.compress.push = int8();
  CHECK(job_of(plan)->push_norm_limit() == 0.5);
  plan.consistency = plan::Bsp{};
  CHECK(job_of(plan)->clips_rounds());  // the shards limit the norm of the round
  plan.compress.push = top_k(1);
  plan.optimizer.kind = plan::Sgd{};
  const auto job = job_of(plan);
  CHECK_FALSE(job->clips_rounds());
  CHECK(job->push_norm_limit() == Approx(0.5 * std::sqrt(3.0)));  // three workers
  // The first gradient stays in the residual for the most part, and is not scaled again.
  plan.compress.push = top_k(0.2);
  const auto lossy = job_of(plan);
  PushEncoder encoder(lossy, WorkerId(0));
  RecordingOutbox out;
  const auto count = static_cast<std::size_t>(lossy->layout->block(BlockId(0)).floats);
  std::vector<double> given(count), received(count);
  for (std::int64_t iteration = 0; iteration < 200; ++iteration) {
    const float scale = iteration == 0 ? 1.0f : 0.001f;
    const Blob gradient = gradient_of(*lossy, BlockId(0), static_cast<std::uint64_t>(iteration));
    for (std::size_t i = 0; i < count; ++i)
      given[i] += static_cast<double>(scale) * gradient.as_floats()[i];
    const auto data =
        encoder.encode(BlockId(0), Version(0), Iteration(iteration), gradient, scale, out);
    std::vector<float> values(count);
    lossy->push_codecs->at(Iteration(iteration)).decode(data.data.bytes(), values);
    for (std::size_t i = 0; i < count; ++i) received[i] += values[i];
  }
  // By now each element has been sent, so the residual is small.
  for (std::size_t i = 0; i < count; ++i) CHECK(std::abs(given[i] - received[i]) < 0.05);
}

TEST_CASE("in its warm-up, top_k sends a quarter of the values, then a quarter as many per phase") {
  const auto codecs = PushCodecs::make(top_k(0.01, 3), 100);  // three phases in 300 iterations
  const auto kept = [&](std::int64_t iteration) {
    return codecs->at(Iteration(iteration)).size(65536) / 6;  // bytes of a value
  };
  CHECK(kept(0) == 16384);
  CHECK(kept(99) == 16384);
  CHECK(kept(100) == 4096);
  CHECK(kept(200) == 1024);
  CHECK(kept(299) == 1024);
  CHECK(kept(300) == 656);
  CHECK(kept(1'000'000) == 656);
  CHECK(PushCodecs::make(top_k(0.01), 100)->at(Iteration(0)).size(65536) == 656 * 6);
  CHECK(PushCodecs::make(top_k(0.5, 3), 100)->at(Iteration(0)).size(65536) == 32768 * 6);
  CHECK(PushCodecs::make(plan::NoCodec{}, 100) == nullptr);
}

TEST_CASE("a gradient that others hold stays as it is") {
  const auto job = job_with(top_k(0.1));
  PushEncoder encoder(job, WorkerId(0));
  RecordingOutbox out;
  const Blob gradient = gradient_of(*job, BlockId(0), 1), same = gradient_of(*job, BlockId(0), 1);
  for (int i = 0; i < 3; ++i)
    encoder.encode(BlockId(0), Version(0), Iteration(i), gradient, 1, out);
  CHECK(std::equal(gradient.bytes().begin(), gradient.bytes().end(), same.bytes().begin()));
}

TEST_CASE("without a codec a gradient is pushed as it is") {
  const auto job = job_with(plan::NoCodec{});
  PushEncoder encoder(job, WorkerId(0));
  RecordingOutbox out;
  const Blob gradient = gradient_of(*job, BlockId(0), 1);
  const auto data = encoder.encode(BlockId(0), Version(0), Iteration(0), gradient, 1, out);
  CHECK(data.data.same_as(gradient));
  CHECK(data.codec == CodecId::none);
}

TEST_CASE("codecs that do not fit a run are refused") {
  const auto refused = [](const std::function<void(Plan&)>& change) {
    Plan plan = tiny_plan();
    change(plan);
    const auto job = make_job(plan, *load_data(plan.data, plan.seed));
    return job ? std::string() : job.error().text;
  };
  CHECK(refused([](Plan& plan) { plan.compress = {.push = top_k(), .pull = int8()}; }) == "");
  CHECK(refused([](Plan& plan) { plan.compress.pull = top_k(); }).starts_with("compress.pull: "));
  CHECK(refused([](Plan& plan) {
          plan.compress.push = int8();
          plan.optimizer.clip_norm = 1;
        }) == "");
  CHECK(refused([](Plan& plan) {
          plan.compress.push = int8();
          plan.consistency = plan::Bsp{};
          plan.optimizer.clip_norm = 1;
        }) == "");
  CHECK(refused([](Plan& plan) {
          plan.compress.push = int8();
          plan.optimizer.clip_value = 1;
        }).starts_with("compress.push: pushes carry earlier residuals"));
  CHECK(refused([](Plan& plan) {
          plan.compress.push = int8();
          plan.optimizer.kind = plan::Assign{};
        }).starts_with("compress.push: sum, assign"));
  CHECK(refused([](Plan& plan) {
          plan.workers = plan.pipeline.stages = 2;
          plan.batch = 4;
          plan.compress.activations = one_bit();
        }).starts_with("compress.activations: one_bit loses too much"));
}

}  // namespace leeway::test
