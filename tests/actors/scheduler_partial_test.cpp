// The scheduler and partial iterations: the samples of a member that ends in the middle of a push
// are leased to another member, which completes the push.
#include <catch2/catch.hpp>

#include "tests/support/scheduler_stand.hpp"

namespace leeway::test {
namespace {

/// Answers to the Fences of a pipeline, in the order of its pairs: a clock, and buckets of the next
/// iteration.
using Answers = std::vector<std::pair<std::int64_t, std::vector<std::uint32_t>>>;

void answer(SchedulerStand& stand, std::uint32_t lead, const Answers& answers) {
  const Pairs pairs = stand.pairs_of(lead);
  REQUIRE(answers.size() == pairs.size());
  std::size_t i = 0;
  for (const auto& [worker, shard] : pairs) {
    stand.deliver(address_of(shard),
                  msg::Fenced{worker, Clock(answers[i].first), answers[i].second});
    ++i;
  }
}

/// All buckets of the pair at that index.
AppliedBuckets whole_pair(const SchedulerStand& stand, std::size_t index) {
  const Pairs pairs = stand.pairs_of(0);
  const auto pair = std::next(pairs.begin(), static_cast<std::ptrdiff_t>(index));
  const std::uint32_t stage = stand.stages().stage_of(pair->first);
  AppliedBuckets buckets;
  for (const auto& bucket : stand.stages().share(stage).at[pair->second.value()].buckets)
    buckets.push_back({static_cast<std::uint16_t>(stage),
                       static_cast<std::uint16_t>(pair->second.value()), bucket.index});
  return buckets;
}

/// The first stage is on one shard, the second on both, with two buckets on the second shard.
Plan two_shards() {
  Plan plan = piped_plan();
  plan.shards = 2;
  plan.model = {plan::Linear{6}, plan::Relu{}, plan::Linear{5}, plan::Relu{},
                plan::Linear{4}, plan::Relu{}, plan::Linear{3}};
  plan.pipeline.split = "0-1,2-6";
  plan.lease_size = 6;  // three iterations
  return plan;
}

std::pair<std::int64_t, std::int64_t> positions(const msg::Lease& lease) {
  return {lease.begin, lease.end};
}

}  // namespace

TEST_CASE("another worker completes an iteration that was pushed to only some shards") {
  Plan plan = tiny_plan();  // whole models
  plan.workers = 2;
  plan.lease_size = 6;
  SchedulerStand stand(plan);
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {})->iterations() == 3);
  stand.end_worker(0);
  // Shard 0 has iteration 1, shard 1 does not.
  const auto first = whole_pair(stand, 0);
  answer(stand, 0, {{2, {}}, {1, {}}});
  CHECK(stand.events<event::Trained>().size() == 1);
  const auto partial = stand.events<event::PartialPush>();
  REQUIRE(partial.size() == 1);
  CHECK(partial[0].iteration == Iteration(1));
  CHECK(partial[0].iterations == 1);
  CHECK(stand.take<msg::Evicted>().at(0).body.partial);
  const auto completing = stand.request_lease(1, Iteration(0), {});
  CHECK(positions(*completing) == std::pair<std::int64_t, std::int64_t>(2, 4));
  CHECK(completing->applied == first);
  const auto rest = stand.request_lease(1, Iteration(1), {});
  CHECK(positions(*rest) == std::pair<std::int64_t, std::int64_t>(4, 6));
  CHECK(rest->applied.empty());
  // The run trains all samples, and reports the partial pushes.
  const Iteration end = stand.train_all(1, Iteration(2));
  stand.deliver(1, msg::Idle{Clock(end.value())});
  stand.stop(1, Clock(end.value()));
  const auto ended = stand.take<msg::RunEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].body.samples_trained == 120);
  CHECK(ended[0].body.partial_pushes == 1);
}

TEST_CASE("a pipeline's iteration is whole when all shards have it from all stages") {
  SchedulerStand stand(two_shards());
  REQUIRE(whole_pair(stand, 2).size() == 2);
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {})->iterations() == 3);
  stand.end_worker(1);
  // Iteration 0 is whole. The first and the last pair have 1, one bucket of the last pair has 2.
  answer(stand, 0, {{2, {}}, {1, {}}, {2, {1}}});
  const auto trained = stand.events<event::Trained>();
  REQUIRE(trained.size() == 1);
  CHECK(trained[0].end == 2);
  CHECK(stand.events<event::PartialPush>().at(0).iterations == 2);
  CHECK(stand.events<event::LeaseReturned>().size() == 2);
  const auto one = stand.request_lease(2, Iteration(0), {});
  CHECK(positions(*one) == std::pair<std::int64_t, std::int64_t>(2, 4));
  CHECK(one->applied == united(whole_pair(stand, 0), whole_pair(stand, 2)));
  const auto two = stand.request_lease(2, Iteration(1), {});
  CHECK(positions(*two) == std::pair<std::int64_t, std::int64_t>(4, 6));
  CHECK(two->applied == AppliedBuckets{whole_pair(stand, 2).back()});
}

TEST_CASE("samples whose buckets two dead pipelines have pushed together count as trained") {
  SchedulerStand stand(two_shards());
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  stand.end_worker(0);
  answer(stand, 0, {{1, {}}, {1, {}}, {0, {}}});
  stand.forget();
  const auto completing = stand.request_lease(2, Iteration(0), {});
  CHECK(completing->applied == united(whole_pair(stand, 0), whole_pair(stand, 1)));
  REQUIRE(stand.events<event::Trained>().empty());
  stand.end_worker(3);
  // The second stage pushes the missing buckets; one shard has no bucket of the first stage.
  answer(stand, 2, {{1, {}}, {0, {}}, {1, {}}});
  const auto trained = stand.events<event::Trained>();
  REQUIRE(trained.size() == 1);
  CHECK(trained[0].worker == WorkerId(2));
  CHECK(trained[0].begin == 0);
  CHECK(trained[0].end == 2);
}

TEST_CASE(
    "a pipeline that was admitted at different clocks and never started leaves no partial "
    "iteration") {
  SchedulerStand stand(two_shards());
  for (const std::uint32_t worker : {0u, 1u, 2u, 3u}) stand.join(worker);
  stand.end_worker(0);
  answer(stand, 0, {{3, {}}, {0, {}}, {2, {}}});
  CHECK(stand.events<event::PartialPush>().empty());
  CHECK_FALSE(stand.take<msg::Evicted>().at(0).body.partial);
}

TEST_CASE("another pipeline completes the iterations of stages that stop at different clocks") {
  SchedulerStand stand(two_shards());
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  stand.deliver(kHost, msg::Leave{WorkerId(0)});
  stand.stop(0, Clock(2));
  stand.stop(1, Clock(1));
  const auto completing = stand.request_lease(2, Iteration(0), {});
  CHECK(positions(*completing) == std::pair<std::int64_t, std::int64_t>(2, 4));
  AppliedBuckets first_stage;
  for (const std::size_t pair : {0u, 1u, 2u})
    for (const auto& bucket : whole_pair(stand, pair))
      if (bucket.stage == 0) first_stage.push_back(bucket);
  CHECK(completing->applied == first_stage);
}

TEST_CASE("impossible clocks and buckets are ignored") {
  SchedulerStand stand(two_shards());
  stand.start_all();
  REQUIRE(stand.request_lease(0, Iteration(0), {}));
  stand.end_worker(0);
  answer(stand, 0, {{(std::int64_t{1} << 62) - 1, {4000}}, {1, {7, 8, 4095}}, {1, {}}});
  const auto completing = stand.request_lease(2, Iteration(0), {});
  CHECK(completing->begin == 2);
  CHECK(completing->applied == whole_pair(stand, 0));
}

}  // namespace leeway::test
