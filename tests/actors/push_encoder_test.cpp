#include "actors/worker/push_encoder.hpp"

#include <catch2/catch.hpp>

#include "runtime/words.hpp"
#include "tests/support/tiny.hpp"

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
  for (std::int64_t i = 0; i < floats; ++i)
    gradient.mutable_floats()[i] = static_cast<float>(rng.uniform() - 0.5);
  return gradient;
}

}  // namespace

TEST_CASE("decoded pushes and the residual sum up to the gradients, for each block") {
  const auto codec = GENERATE(int8(), int4(), one_bit(), top_k(0.1), random_k(0.2), two_bit(0.4));
  const auto job = job_with(codec);
  PushEncoder encoder(job, WorkerId(0));
  for (const Block& block : job->layout->blocks()) {
    const auto count = static_cast<std::size_t>(block.floats);
    std::vector<double> given(count), received(count);
    for (std::int64_t iteration = 0; iteration < 400; ++iteration) {
      Blob gradient = gradient_of(*job, block.id, static_cast<std::uint64_t>(iteration));
      for (std::size_t i = 0; i < count; ++i) given[i] += gradient.as_floats()[i];
      const auto data =
          encoder.encode(block.id, Version(7), Iteration(iteration), std::move(gradient));
      REQUIRE(data.codec == id_of(codec));
      REQUIRE(data.version == Version(7));
      REQUIRE(data.shape == Shape{block.floats});
      REQUIRE(job->push_codec->check(data.data.bytes(), count));
      std::vector<float> values(count);
      job->push_codec->decode(data.data.bytes(), values);
      for (std::size_t i = 0; i < count; ++i) received[i] += values[i];
    }
    // What is missing is the residual, which does not grow with the number of pushes.
    for (std::size_t i = 0; i < count; ++i) CHECK(std::abs(given[i] - received[i]) < 20);
  }
}

TEST_CASE("a gradient that others hold stays as it is") {
  const auto job = job_with(top_k(0.1));
  PushEncoder encoder(job, WorkerId(0));
  const Blob gradient = gradient_of(*job, BlockId(0), 1), same = gradient_of(*job, BlockId(0), 1);
  for (int i = 0; i < 3; ++i) encoder.encode(BlockId(0), Version(0), Iteration(i), gradient);
  CHECK(std::equal(gradient.bytes().begin(), gradient.bytes().end(), same.bytes().begin()));
}

TEST_CASE("without a codec a gradient is pushed as it is") {
  const auto job = job_with(plan::NoCodec{});
  PushEncoder encoder(job, WorkerId(0));
  const Blob gradient = gradient_of(*job, BlockId(0), 1);
  const auto data = encoder.encode(BlockId(0), Version(0), Iteration(0), gradient);
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
          plan.consistency = plan::Backup{1};
        }).starts_with("compress.push: "));
}

}  // namespace leeway::test
