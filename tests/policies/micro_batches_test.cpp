#include "policies/balance/micro_batches.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

#include "policies/balance/balance.hpp"

using namespace leeway;

namespace {

Plan any_plan() {
  Plan plan;
  plan.batch = *rc::gen::inRange(1u, 100u);
  plan.micro_batches = *rc::gen::inRange(1u, plan.batch + 1);
  plan.pipeline.stages = *rc::gen::inRange(1u, 4u);
  plan.balance = *rc::gen::element(plan::Balance::equal, plan::Balance::by_speed);
  return plan;
}

/// The size of the largest micro-batch.
std::int64_t largest_piece(std::int64_t samples, std::int64_t pieces) {
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < pieces; ++i)
    most = std::max(most, samples * (i + 1) / pieces - samples * i / pieces);
  return most;
}

}  // namespace

TEST_CASE("the plan's batch has the plan's number of micro-batches, and smaller batches fewer") {
  Plan plan;
  plan.batch = 10;
  plan.micro_batches = 4;  // of 2, 3, 2 and 3 samples
  CHECK(micro_batch_size(plan) == 3);
  CHECK(micro_batches_of(plan, 10) == 4);
  CHECK(micro_batches_of(plan, 7) == 3);
  CHECK(largest_micro_batch(plan) == 3);
}

TEST_CASE("with balance by speed a pipeline gets larger micro-batches, and a worker gets more") {
  Plan plan;
  plan.batch = 10;
  plan.micro_batches = 4;
  plan.balance = plan::Balance::by_speed;
  CHECK(micro_batches_of(plan, 80) == 27);
  plan.pipeline.stages = 2;
  CHECK(micro_batches_of(plan, 80) == 4);
  CHECK(largest_micro_batch(plan) == 20);
}

TEST_CASE("no micro-batch of any iteration is larger than the predicted size") {
  rc::prop("any plan", [] {
    const Plan plan = any_plan();
    const bool piped = plan.pipeline.stages > 1;
    const std::int64_t most = piped ? largest_micro_batch(plan) : micro_batch_size(plan);
    for (std::int64_t samples = 1; samples <= largest_batch(plan); ++samples) {
      const std::int64_t pieces = micro_batches_of(plan, samples);
      RC_ASSERT(pieces >= 1 && pieces <= samples);
      RC_ASSERT(largest_piece(samples, pieces) <= most);
      if (samples <= plan.batch)
        RC_ASSERT(largest_piece(samples, pieces) <= micro_batch_size(plan));
      if (piped) RC_ASSERT(pieces <= plan.micro_batches);
    }
    RC_ASSERT(largest_piece(largest_batch(plan), micro_batches_of(plan, largest_batch(plan))) ==
              most);
  });
}
