#include "runtime/tools/what_if.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "blame/critical_path.hpp"
#include "blame/run_waits.hpp"
#include "blame/timeline.hpp"
#include "runtime/scenario.hpp"
#include "runtime/words.hpp"
#include "tests/support/process.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

/// The folder of a run with a straggler and --trace, and its result.
class TracedRun {
 public:
  explicit TracedRun(plan::Consistency consistency, bool is_simulated = true,
                     const plan::Pipeline& pipeline = {}) {
    Plan plan;
    plan.name = "traced";
    plan.data = plan::Synthetic{4000, 100, plan::Clusters{4, 32, 4}};
    plan.model = {plan::Linear{64}, plan::Relu{}, plan::Linear{4}};
    plan.optimizer.kind = plan::Momentum{};
    plan.consistency = consistency;
    plan.workers = 4;
    plan.shards = 2;
    plan.batch = 10;
    plan.stop.epochs = 2;
    plan.stragglers = {slow(pipeline.stages > 1 ? 2 : 3, 4)};
    plan.evaluate_every = 0;
    plan.pipeline = pipeline;
    if (pipeline.stages > 1) {
      plan.micro_batches = 4;
      plan.batch = 16;
      if (pipeline.schedule.ends_with("_v"))  // two chunks per stage
        plan.model = {plan::Linear{64}, plan::Relu{}, plan::Linear{64}, plan::Relu{},
                      plan::Linear{4}};
    }
    if (is_simulated) plan.simulated = plan::World{.speed = 0.01};
    RunOptions options;
    options.folder = folder();
    options.trace = options.quiet = true;
    result_ = run(plan, options);
    INFO(result_.error);
    REQUIRE(result_.ok());
  }
  std::string folder() const { return root_ / "run"; }
  const Result& result() const { return result_; }

 private:
  test::TemporaryFolder root_;
  Result result_;
};

}  // namespace

TEST_CASE("the causes of waiting sum to the measured time, simulated and on threads") {
  for (const bool is_simulated : {true, false})
    for (const plan::Consistency& policy :
         {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{2}),
          plan::Consistency(plan::Asp{})}) {
      const TracedRun traced(policy, is_simulated);
      const auto waits = blame::read_run_waits(traced.folder());
      REQUIRE(waits);
      INFO((is_simulated ? "simulated" : "threads") << ", policy " << policy.index());
      CHECK(waits->from_events);
      CHECK(waits->wait > 0);
      CHECK(waits->attributed() == Approx(waits->wait).epsilon(0.01));
      if (std::holds_alternative<plan::Asp>(policy)) continue;
      const blame::Cause slow{blame::Cause::Kind::worker, 3};
      if (is_simulated) CHECK(waits->by_cause().front().first == slow);
    }
}

TEST_CASE("the critical path of a run leads through its straggler, and lasts as long as the run") {
  using Activity = blame::CriticalPath::Activity;
  struct Case {
    plan::Consistency policy;
    plan::Pipeline pipeline;
    std::size_t slow;
  };
  const auto [policy, pipeline, slow] = GENERATE(
      Case{plan::Bsp{}, {}, 3}, Case{plan::Ssp{2}, {}, 3}, Case{plan::Bsp{}, {.stages = 2}, 2},
      Case{plan::Bsp{}, {.stages = 2, .schedule = "zb_v", .chunks = 2}, 2},
      Case{plan::Bsp{}, {.stages = 2, .schedule = "dualpipe_v", .chunks = 2}, 2});
  CAPTURE(policy.index(), pipeline.stages, pipeline.schedule);
  const TracedRun traced(policy, true, pipeline);
  const auto path = blame::find_critical_path(traced.folder());
  REQUIRE(path);
  double sum = 0, computing = 0, of_slow = 0;
  for (const auto& row : path->rows) {
    sum += row.seconds;
    if (row.activity == Activity::computing) computing += row.seconds;
    if (row.activity == Activity::computing && row.worker == slow) of_slow = row.seconds;
  }
  CHECK(sum == Approx(path->seconds));
  CHECK(path->seconds == Approx(traced.result().seconds).epsilon(0.05));
  CHECK(of_slow > 0.8 * computing);
  CHECK(computing > 0.5 * path->seconds);
}

TEST_CASE("a replay takes as long as the run did, and less without its straggler") {
  const TracedRun traced(plan::Ssp{1});
  const auto answer = what_if({.folder = traced.folder(), .without_stragglers = {3}});
  REQUIRE(answer);
  CHECK(answer->measured.seconds == Approx(traced.result().seconds).epsilon(0.01));
  CHECK(answer->as_it_ran.samples_per_second ==
        Approx(answer->measured.samples_per_second).epsilon(0.03));
  CHECK(answer->as_it_ran.waiting == Approx(answer->measured.waiting).margin(0.03));
  // The straggler holds three quarters of the time of the others.
  CHECK(answer->changed.samples_per_second > 2.5 * answer->as_it_ran.samples_per_second);
  CHECK_FALSE(answer->changed.test_loss);
}

TEST_CASE("a run with auto and momentum is replayed as it ran, and with other policies") {
  const TracedRun traced(plan::Automatic{});
  const std::vector<WhatIfOptions> options = {{.folder = traced.folder()},
                                              {.folder = traced.folder(), .consistency = bsp()},
                                              {.folder = traced.folder(), .consistency = asp()}};
  const auto answers = what_if(options);
  REQUIRE(answers);
  CHECK(answers->at(0).as_it_ran.seconds == Approx(traced.result().seconds).epsilon(0.1));
  CHECK(answers->at(1).changed.samples_per_second < answers->at(0).changed.samples_per_second);
  CHECK_THAT(what_if({.folder = traced.folder(), .balance = plan::Balance::equal}).error().text,
             Contains("--staleness auto gives batches by speed"));
}

TEST_CASE("what-if computes real gradients on request") {
  const TracedRun traced(plan::Bsp{});
  const auto answer = what_if(
      {.folder = traced.folder(), .consistency = plan::Asp{}, .workers = 6, .gradients = true});
  REQUIRE(answer);
  REQUIRE(answer->as_it_ran.test_loss);
  REQUIRE(answer->changed.test_loss);
  // Under bsp, the replay computes the same weights.
  CHECK(*answer->as_it_ran.test_loss == Approx(traced.result().test_loss));
  CHECK(answer->changed.samples_per_second > answer->as_it_ran.samples_per_second);
}

TEST_CASE("the stages of pipelines are replayed, and with other schedules") {
  const TracedRun traced(plan::Ssp{1}, true, {.stages = 2});
  const auto answers = what_if(std::vector<WhatIfOptions>{
      {.folder = traced.folder(), .without_stragglers = {2}},
      {.folder = traced.folder(), .schedule = "2bw", .without_stragglers = {2}},
      {.folder = traced.folder(), .consistency = plan::Bsp{}, .workers = 6}});
  REQUIRE(answers);
  const RunTimes& as_it_ran = answers->front().as_it_ran;
  CHECK(as_it_ran.samples_per_second ==
        Approx(answers->front().measured.samples_per_second).epsilon(0.05));
  CHECK(answers->at(0).changed.samples_per_second > 2 * as_it_ran.samples_per_second);
  CHECK(answers->at(1).plan.pipeline.schedule == "2bw");
  CHECK(answers->at(1).changed.samples_per_second > answers->at(0).changed.samples_per_second);
  CHECK(answers->at(2).changed.samples_per_second > 1.2 * as_it_ran.samples_per_second);
  CHECK_THAT(what_if({.folder = traced.folder(), .schedule = "2bv"}).error().text,
             Contains("--schedule: ") && Contains("2bw"));
  CHECK_THAT(what_if({.folder = TracedRun(plan::Bsp{}).folder(), .schedule = "2bw"}).error().text,
             Contains("the run has no pipelines"));
}

/// A trace of two replicas of two stages, with two micro-batches, one after the other. The first
/// stage of replica 1 takes twice the time.
std::string trace_text(int replicas, double slow = 2) {
  std::ostringstream csv;
  csv << "dp_rank,stage,step,optype,start_ts,duration,seq_id\n";
  for (int step = 0; step < 3; ++step)
    for (int replica = 0; replica < replicas; ++replica) {
      double now = 100.0 * step;
      const auto add = [&](int stage, const char* kind, int number) {
        const double seconds = replica == 1 && stage == 0 ? slow : 1;
        csv << replica << ',' << stage << ',' << step << ',' << kind << "-compute," << now << ','
            << seconds << ',' << number << '\n';
        now += seconds;
      };
      for (int number = 0; number < 2; ++number) {
        add(0, "forward", number);
        add(1, "forward", number);
        add(1, "backward", number);
        add(0, "backward", number);
      }
    }
  return csv.str();
}

TEST_CASE("a trace of another system is replayed under other policies") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "trace.csv") << trace_text(2);
  const auto answer = what_if({.import = folder / "trace.csv", .without_stragglers = {2}});
  REQUIRE(answer);
  const auto step_of = [&](const RunTimes& times) {
    return answer->samples_per_step / times.samples_per_second;
  };
  // 1f1b overlaps what the trace did one after the other. A stage computes for 4 s in a step, the
  // slow one for 8 s; the other one's first forward and last backward are in its shadow.
  CHECK(step_of(answer->measured) == Approx(12));
  CHECK(step_of(answer->as_it_ran) > 8);
  CHECK(step_of(answer->as_it_ran) < 12);
  CHECK(step_of(answer->changed) == Approx(6).epsilon(0.05));
  const auto backup = what_if({.import = folder / "trace.csv", .consistency = plan::Backup{1}});
  REQUIRE(backup);
  CHECK(backup->plan.pipeline.stages == 1);
  // Without transfers in the trace, the slow replica takes twice the time: a round without it takes
  // half as long, and has half the samples.
  CHECK(backup->changed.samples_per_second ==
        Approx(backup->as_it_ran.samples_per_second).epsilon(0.05));
  CHECK(backup->changed.waiting < backup->as_it_ran.waiting);
  const auto chunked = what_if({.import = folder / "trace.csv", .schedule = "interleaved"});
  REQUIRE(chunked);
  CHECK(chunked->plan.pipeline.chunks == 2);
  CHECK_THAT(
      what_if({.import = folder / "trace.csv", .consistency = plan::Backup{1}, .schedule = "2bw"})
          .error()
          .text,
      Contains("each replica of a trace is one worker"));
  CHECK_THAT(what_if({.import = folder / "trace.csv", .workers = 8}).error().text,
             Contains("--workers: a trace has the times of its own ranks"));
  std::ofstream(folder / "one.csv") << trace_text(1);
  CHECK_THAT(what_if({.import = folder / "one.csv", .without_stragglers = {0}}).error().text,
             Contains("the trace has one replica"));
}

TEST_CASE("a trace is replayed with much slower iterations, but no endless ones") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "slow.csv") << trace_text(2, 1e4);
  const auto answer = what_if({.import = folder / "slow.csv", .without_stragglers = {2}});
  REQUIRE(answer);
  CHECK(answer->changed.samples_per_second > 1000 * answer->as_it_ran.samples_per_second);
  std::ofstream(folder / "endless.csv") << trace_text(2, 1e7);
  CHECK_THAT(what_if({.import = folder / "endless.csv", .without_stragglers = {2}}).error().text,
             Contains("an iteration of worker 2 takes 1e+07 times as long"));
}

TEST_CASE("a timeline has each iteration and each wait, no overlaps, and flows with two ends") {
  const TracedRun traced(plan::Bsp{});
  std::stringstream out;
  const auto written =
      blame::write_timeline(traced.folder(), [&]() -> std::ostream& { return out; });
  REQUIRE(written);
  const auto json = nlohmann::json::parse(out.str());
  std::map<std::string, std::size_t> phases;
  std::map<std::uint64_t, int> flows;
  std::set<std::string> actors;
  std::map<std::size_t, std::int64_t> ends;  // by track: of its last slice, in ns
  const auto nanoseconds_of = [](const nlohmann::json& us) {
    return std::llround(us.get<double>() * 1e3);
  };
  double waits = 0, computed = 0;
  for (const auto& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ++phases[phase];
    if (phase == "s") flows[event.at("id")] += 1;
    if (phase == "f") flows[event.at("id")] -= 1;
    if (phase == "M" && event.at("name") == "thread_name")
      actors.insert(event.at("args").at("name"));
    if (phase != "X") continue;
    std::int64_t& end = ends[event.at("tid")];
    CHECK(nanoseconds_of(event.at("ts")) >= end);
    end = nanoseconds_of(event.at("ts")) + nanoseconds_of(event.at("dur"));
    if (event.at("cat") == "compute") computed += event.at("dur").get<double>();
    if (event.at("cat") == "wait") waits += event.at("dur").get<double>();
  }
  CHECK(json.at("traceEvents").size() == *written + phases["M"]);
  CHECK(actors == std::set<std::string>{"scheduler", "shard 0", "shard 1", "worker 0", "worker 1",
                                        "worker 2", "worker 3"});
  CHECK(phases["b"] == phases["e"]);
  CHECK(phases["b"] > 0);
  CHECK(phases["s"] > 0);
  for (const auto& [id, open] : flows) CHECK(open == 0);
  double compute = 0, wait = 0;
  for (const auto& worker : traced.result().totals.workers) {
    compute += worker.compute.seconds();
    wait += worker.wait.seconds();
  }
  CHECK(computed * 1e-6 == Approx(compute).epsilon(0.01));
  CHECK(waits * 1e-6 == Approx(wait).epsilon(0.01));
}

TEST_CASE("a run without events, and workers that it does not have, are refused") {
  const TracedRun traced(plan::Bsp{});
  CHECK_THAT(what_if({.folder = traced.folder(), .without_stragglers = {4}}).error().text,
             Contains("worker4 is not one of the 4 workers"));
  std::filesystem::remove(traced.folder() + "/events.bin");
  CHECK_THAT(what_if({.folder = traced.folder()}).error().text, Contains("--trace"));
  CHECK_FALSE(what_if({.folder = traced.folder() + "/missing"}));
}

}  // namespace leeway
