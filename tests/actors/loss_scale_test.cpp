// Losses with a factor under fp16: the factor itself, and whole runs.
#include "actors/shard/loss_scale.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/bits.hpp"
#include "tests/support/checkers.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

LossScale scale_from(float first, bool by_rounds = true) {
  return {by_rounds, {Iteration(), first, 0}};
}

Plan fp16_plan(plan::Consistency consistency, double scale) {
  Plan plan = tiny_plan();
  plan.consistency = consistency;
  plan.precision = "fp16";
  plan.loss_scale = scale;
  return plan;
}

RunTotals run_checked(const Plan& plan, std::uint64_t interleaving, FaultRates faults = {}) {
  const auto job = job_of(plan);
  TestHost host(job, interleaving, faults);
  observe_all(host, job);
  return host.run();
}

}  // namespace

TEST_CASE("all overflows of a round halve the factor once, from the next round on", "[fp16]") {
  LossScale scale = scale_from(1024);
  CHECK(scale.at(Iteration(3)) == 1024);
  scale.overflowed(WorkerId(0), Iteration(3), 1024);
  CHECK(scale.at(Iteration(3)) == 1024);  // for a worker that pulls it later
  scale.overflowed(WorkerId(1), Iteration(3), 1024);
  CHECK(scale.skipped() == 1);
  CHECK(scale.at(Iteration(4)) == 512);
  CHECK(scale.at(Iteration(3)) == 1024);
  scale.overflowed(WorkerId(0), Iteration(4), 512);
  CHECK(scale.at(Iteration(5)) == 256);
  CHECK(scale.skipped() == 2);
}

TEST_CASE("the factor doubles after 2,000 iterations without an overflow, up to a limit",
          "[fp16]") {
  LossScale scale = scale_from(1024);
  CHECK(scale.at(Iteration(1999)) == 1024);
  CHECK(scale.at(Iteration(2000)) == 2048);
  scale.overflowed(WorkerId(0), Iteration(2100), 2048);
  CHECK(scale.at(Iteration(2101)) == 1024);
  CHECK(scale.at(Iteration(4100)) == 1024);
  CHECK(scale.at(Iteration(4101)) == 2048);
  CHECK(scale.at(Iteration(1000000)) == LossScale::kMost);
}

TEST_CASE("the factor does not fall below 1", "[fp16]") {
  LossScale scale = scale_from(2);
  for (std::int64_t i = 0; i < 5; ++i)
    scale.overflowed(WorkerId(0), Iteration(i), scale.at(Iteration(i)));
  CHECK(scale.at(Iteration(5)) == 1);
  CHECK(scale.skipped() == 5);
}

TEST_CASE("without rounds, the overflow of any worker halves the factor at once", "[fp16]") {
  LossScale scale = scale_from(1024, false);
  CHECK(scale.at(Iteration(1000)) == 1024);
  scale.overflowed(WorkerId(0), Iteration(2), 1024);  // of a slow worker, in two buckets
  scale.overflowed(WorkerId(0), Iteration(2), 1024);
  CHECK(scale.skipped() == 1);
  CHECK(scale.at(Iteration(3)) == 512);
  scale.overflowed(WorkerId(1), Iteration(7), 1024);  // computed with the older factor
  CHECK(scale.at(Iteration(8)) == 512);
  CHECK(scale.skipped() == 2);
  for (int i = 0; i < 4 * 1999; ++i) scale.pushed(0.25);
  CHECK(scale.at(Iteration(std::int64_t{1} << 61)) == 512);
  for (int i = 0; i < 4; ++i) scale.pushed(0.25);
  CHECK(scale.at(Iteration(3)) == 1024);
}

TEST_CASE("the state of the factor survives a copy to a standby", "[fp16]") {
  LossScale scale = scale_from(1024), copy = scale_from(1);
  scale.overflowed(WorkerId(0), Iteration(3), 1024);
  CHECK(scale.at(Iteration(4)) == 512);
  scale.overflowed(WorkerId(0), Iteration(4), 512);
  copy.restore(scale.save());
  for (const std::int64_t i : {3, 4, 5, 2004, 2005, 9000})
    CHECK(copy.at(Iteration(i)) == scale.at(Iteration(i)));
  CHECK(copy.skipped() == scale.skipped());
}

TEST_CASE("the first rounds with a factor that is too large are skipped", "[fp16]") {
  const Plan plan = fp16_plan(plan::Bsp{}, 16777216);
  const RunTotals totals = run_checked(plan, 1);
  CHECK(totals.end.samples_trained == 120);
  CHECK(totals.last.skipped_updates > 0);
  CHECK(totals.last.loss_scale ==
        16777216 / std::exp2(static_cast<double>(totals.last.skipped_updates)));
  for (std::uint64_t interleaving = 2; interleaving < 8; ++interleaving)
    CHECK(same_bits(floats_of(totals.weights), floats_of(run_checked(plan, interleaving).weights)));
}

TEST_CASE("a factor that does not overflow changes little, and skips nothing", "[fp16]") {
  Plan plan = fp16_plan(plan::Bsp{}, 1024);
  const RunTotals scaled = run_checked(plan, 1);
  CHECK(scaled.last.skipped_updates == 0);
  CHECK(scaled.last.loss_scale == 1024);
  plan.precision = "fp32";
  plan.loss_scale = Plan().loss_scale;
  const RunTotals exact = run_checked(plan, 1);
  CHECK(exact.last.loss_scale == 0);
  const auto a = floats_of(scaled.weights), b = floats_of(exact.weights);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(0.01));
}

TEST_CASE("losses have a factor under every bound, in groups, with codecs and limits", "[fp16]") {
  for (const plan::Consistency& bound :
       {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{1}),
        plan::Consistency(plan::Asp{}), plan::Consistency(plan::Adaptive{1, 4})}) {
    Plan plan = fp16_plan(bound, 16777216);
    plan.compress.push = plan::Int8{};
    plan.optimizer.clip_norm = 0.5;
    CAPTURE(bound.index());
    CHECK(run_checked(plan, 3).end.samples_trained == 120);
  }
  Plan plan = fp16_plan(plan::Bsp{}, 16777216);
  plan.workers = 4;
  plan.aggregate = plan::GroupsOf{2};
  const RunTotals grouped = run_checked(plan, 3);
  CHECK(grouped.last.skipped_updates > 0);
  CHECK(grouped.end.samples_trained == 120);
}

TEST_CASE("a group with a factor equals one worker with its micro-batches", "[fp16]") {
  Plan plan = fp16_plan(plan::Bsp{}, 4194304);
  plan.workers = 3;
  plan.batch = 4;
  plan.aggregate = plan::GroupsOf{3};
  Plan one = plan;
  one.aggregate = plan::NoGroups{};
  one.workers = 1;
  one.batch = 12;
  one.micro_batches = 3;
  CHECK(same_bits(floats_of(run_checked(plan, 2).weights), floats_of(run_checked(one, 1).weights)));
}

TEST_CASE("rounds with overflows survive lost workers", "[fp16]") {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    CAPTURE(seed);
    const plan::Consistency bound =
        seed % 2 == 0 ? plan::Consistency(plan::Bsp{}) : plan::Consistency(plan::Ssp{2});
    const RunTotals totals = run_checked(fp16_plan(bound, 16777216), seed,
                                         {.kill_one_in = 600, .break_link_one_in = 60});
    CHECK(totals.end.samples_trained == 120);
  }
}

TEST_CASE("a run without a factor for its losses refuses fp16 by name", "[fp16]") {
  const auto refusal_of = [](const Plan& plan) {
    auto data = load_data(plan.data, plan.seed);
    REQUIRE(data);
    const auto job = make_job(plan, std::move(*data));
    return job ? std::string() : job.error().text;
  };
  Plan plan = fp16_plan(plan::Bsp{}, 1024);
  CHECK(refusal_of(plan).empty());
  plan.consistency = plan::Backup{1};
  CHECK(refusal_of(plan).find("--staleness bsp") != std::string::npos);
  plan.consistency = plan::Bsp{};
  plan.local_steps.count = 2;
  CHECK(refusal_of(plan).find("--local-steps 0") != std::string::npos);
  plan.local_steps = {};
  plan.pipeline.stages = plan.workers;
  CHECK(refusal_of(plan).find("--stages 1") != std::string::npos);
  plan.pipeline = {};
  plan.loss_scale = 1000;
  CHECK(refusal_of(plan).find("loss_scale: 1000 is not a power of two; give --loss-scale 1024") !=
        std::string::npos);
}

}  // namespace leeway::test
