// The summary and the progress line of runs, with workers and with pipelines.
#include "monitoring/summary.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "monitoring/format.hpp"
#include "monitoring/progress_line.hpp"
#include "tests/support/tiny.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

Plan piped_plan() {
  Plan plan = tiny_plan();
  plan.pipeline.stages = 2;
  plan.workers = 4;
  plan.micro_batches = 2;
  return plan;
}

RunTotals totals_of(const Job& job) {
  RunTotals totals;
  totals.workers.resize(job.plan.workers);
  totals.workers[2].end = "was killed";
  if (job.stages->piped())
    totals.workers[3] = {.samples = 24,
                         .compute = milliseconds(30),
                         .wait = milliseconds(10),
                         .wait_before = milliseconds(7),
                         .wait_after = milliseconds(1)};
  totals.waits = {{WorkerId(1), WorkerId(2), milliseconds(5), 3}};
  totals.end.partial_pushes = 1;
  return totals;
}

/// The text of the progress line when worker 2 ends and returns.
std::string eviction(const Job& job) {
  std::ostringstream out;
  ProgressLine line(job, out);
  line.evicted(WorkerId(2), {WorkerId(2), "was killed", 12, false});
  line.came_back(WorkerId(2));
  return out.str();
}

}  // namespace

TEST_CASE("each move of the bound is logged with the reason") {
  std::ostringstream out;
  ProgressLine line(*job_of(tiny_plan()), out);
  line.bound_moved({4, 5, 12});
  line.bound_moved({5, 7, 31});
  line.bound_moved({7, 6, 1});
  CHECK(out.str() ==
        "staleness bound 4 -> 5: workers wait for each other 12% of their time\n"
        "staleness bound 5 -> 7: workers wait for each other 31% of their time\n"
        "staleness bound 7 -> 6: workers wait for each other 1% of their time\n");
}

TEST_CASE("actors are described as workers, or as pipelines of stages") {
  CHECK(describe_actors(tiny_plan()) == "3 workers, 2 shards");
  Plan plan = piped_plan();
  CHECK(describe_actors(plan) == "2 pipelines of 2 stages (1f1b, 2 micro-batches), 2 shards");
  plan.workers = 2;
  plan.shards = 1;
  plan.micro_batches = 1;
  plan.pipeline.schedule = "interleaved";
  plan.pipeline.chunks = 2;
  CHECK(describe_actors(plan) ==
        "1 pipeline of 2 stages (interleaved, 2 chunks each, 1 micro-batch), 1 shard");
}

TEST_CASE("a summary without pipelines lists workers by number") {
  const auto job = job_of(tiny_plan());
  const std::string text = summary(*job, totals_of(*job));
  CHECK_THAT(text, Contains("\n  worker  iterations     samples   computing     waiting\n") &&
                       Contains("\n       2           0 ") && Contains("ended: was killed\n") &&
                       Contains("\n  worker 1 for worker 2: ") && !Contains("  actors  "));
  CHECK_THAT(eviction(*job), Contains("worker 2 ended and was evicted: was killed (12 samples") &&
                                 Contains("worker 2 is back\n"));
}

TEST_CASE("a summary with pipelines names the pipeline and stage of each worker") {
  const auto job = job_of(piped_plan());
  const std::string text = summary(*job, totals_of(*job));
  CHECK_THAT(
      text,
      Contains("\n  actors          2 pipelines of 2 stages (1f1b, 2 micro-batches), 2 shards\n") &&
          Contains(
              "\n  pipeline  stage  worker  iterations     samples   computing     waiting for: "
              "stage before  stage after") &&
          Contains("\n         1      0       2           0          24 ") &&
          Contains(
              "\n         1      1       3           0          24       30 ms       10 ms     "
              "         7 ms         1 ms              2 ms\n            ended: was killed\n") &&
          Contains("\n  pipeline 0 stage 1 (worker 1) for pipeline 1 stage 0 (worker 2): ") &&
          Contains(
              "\n  all for pipeline 1: 5 ms; its busiest is stage 1 (worker 3), which computed "
              "75.00% of its time\n"));
  CHECK_THAT(eviction(*job), Contains("pipeline 1 (workers 2 to 3) ended and was evicted: ") &&
                                 Contains("pipeline 1 (workers 2 to 3) is back\n"));
}

TEST_CASE("result.json has pipeline and stage only for workers of a pipeline") {
  const auto workers_of = [](const Plan& plan) {
    const auto job = job_of(plan);
    return nlohmann::json::parse(result_json(*job, totals_of(*job)))["workers"];
  };
  CHECK_FALSE(workers_of(tiny_plan())[2].contains("stage"));
  const auto piped = workers_of(piped_plan());
  REQUIRE(piped.size() == 4);
  CHECK(piped[3]["worker"] == 3);
  CHECK(piped[3]["pipeline"] == 1);
  CHECK(piped[3]["stage"] == 1);
  CHECK(piped[2]["samples"] == 24);  // reported by the last stage
  CHECK(piped[0]["samples"] == 0);
  CHECK(piped[3]["wait_for_stage_before_seconds"] == 0.007);
  CHECK(piped[3]["wait_for_stage_after_seconds"] == 0.001);
}

TEST_CASE("the reason for the end of a pipeline is printed once") {
  const auto job = job_of(piped_plan());
  std::ostringstream out;
  ProgressLine line(*job, out);
  line.evicted(WorkerId(2), {WorkerId(2), "worker 3 (stage 1): boom", 12, true});
  CHECK_THAT(out.str(),
             Contains("pipeline 1 (workers 2 to 3) ended and was evicted: worker 3 "
                      "(stage 1): boom (12 samples are leased again, one push is partial)"));
  line.evicted(WorkerId(0), {WorkerId(0), "it was asked to leave", 0, false});
  CHECK_THAT(out.str(),
             Contains("pipeline 0 (workers 0 to 1) ended and was evicted: it was asked"));
}

TEST_CASE("without gradients, losses and memory are not reported") {
  Plan plan = piped_plan();
  plan.simulated = plan::World{.cost_only = true};
  const auto job = job_of(plan);
  RunTotals totals = totals_of(*job);
  totals.evaluations = {{Instant{}, 24, 0, 0, true}};
  CHECK_THAT(summary(*job, totals), Contains("samples trained") && !Contains("test loss") &&
                                        !Contains("test accuracy") &&
                                        !Contains("Memory of a stage"));
  const auto json = nlohmann::json::parse(result_json(*job, totals));
  CHECK_FALSE(json.contains("test_loss"));
  CHECK(json["evaluations"].empty());
  std::ostringstream out;
  ProgressLine line(*job, out);
  line.evaluated(totals.evaluations[0]);
  line.progress({.now = Instant{}, .train_loss = 0});
  line.progress({.now = Instant{} + seconds(9), .train_loss = 0});
  CHECK_THAT(out.str(), Contains("samples/s") && !Contains("loss") && !Contains("test"));
}
