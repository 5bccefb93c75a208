// Pipelines on the command line and in scenarios: the effects of flags, and their errors.
#include "runtime/flags/pipeline.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "leeway.hpp"

namespace leeway::test {
namespace {

using Stages = std::vector<std::uint32_t>;

Scenario small() {
  Scenario scenario("small", "A small task.");
  scenario.data(clusters(3, 4, 600)).model({linear(8), relu(), linear(3)}).shards(1).batch(16);
  return scenario;
}
Scenario with_pipelines() {
  Scenario scenario = small();
  scenario.stages(4)
      .pipelines(2)
      .pipeline_schedule("interleaved", 2)
      .micro_batches(8)
      .split("0-1,2,3,4,5,6,7,8")
      .recompute({0, 1, 2, 3});
  return scenario;
}

/// The plan of a command line, and its output on stderr.
struct Parsed {
  Plan plan;
  std::string error;
};
Parsed parsed(const Scenario& scenario, const std::string& flags) {
  std::vector<std::string> words{"small", "--no-out"};
  std::istringstream all(flags);
  for (std::string word; all >> word;) words.push_back(word);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  std::ostringstream output;
  auto* const before = std::cerr.rdbuf(output.rdbuf());
  const CommandLine line = parse(scenario, static_cast<int>(argv.size()), argv.data());
  std::cerr.rdbuf(before);
  const bool only_note = output.str().find("is now called") != std::string::npos;
  CHECK(line.exit_code.has_value() == (!output.str().empty() && !only_note));
  return {line.plan, output.str()};
}
std::string refusal(const std::string& flags) {
  return parsed(small(), flags).error;
}

}  // namespace

TEST_CASE("an old name of a schedule is accepted with a note, from a flag and from a plan") {
  const std::string note = "small: the schedule fill_drain is now called gpipe\n";
  const Parsed flag = parsed(small(), "--stages 2 --schedule fill_drain");
  CHECK(flag.plan.pipeline.schedule == "gpipe");
  CHECK(flag.error == note);
  const Parsed planned = parsed(small().stages(2).pipeline_schedule("fill_drain"), "");
  CHECK(planned.plan.pipeline.schedule == "gpipe");
  CHECK(planned.error == note);
}

TEST_CASE("--stages and --pipelines set the number of workers") {
  const auto workers = [](const std::string& flags) {
    const Parsed line = parsed(small(), flags);
    CHECK(line.error == "");
    return line.plan.workers;
  };
  CHECK(workers("") == 4);
  CHECK(workers("--stages 3") == 3);
  CHECK(workers("--stages 3 --pipelines 2") == 6);
  CHECK(workers("--stages 3 --workers 9") == 9);
  CHECK(workers("--stages 3 --workers 6 --pipelines 2") == 6);
  CHECK(workers("--stages 1") == 4);
  CHECK(workers("--stages 1 --pipelines 5") == 5);
  CHECK(parsed(small(), "--stages 3").plan.pipeline.stages == 3);
}

TEST_CASE("a number of workers that is not a multiple of the stages is refused") {
  CHECK(refusal("--stages 4 --workers 6") ==
        "small: pipeline.stages: 6 workers cannot be divided into pipelines of 4 stages; give "
        "--workers 4 or 8\n");
  CHECK(refusal("--stages 4 --workers 6 --pipelines 2") ==
        "small: --pipelines: 2 pipelines of 4 stages need 8 workers, but --workers is 6; give "
        "--workers 8, or leave it out\n");
  CHECK(refusal("--stages 4 --pipelines 0") ==
        "small: --pipelines: 0 of 4 stages are not allowed; give --pipelines 1 to 16384\n");
  CHECK(refusal("--stages 4 --pipelines 4294967295") ==
        "small: --pipelines: 4294967295 of 4 stages are not allowed; give --pipelines 1 to "
        "16384\n");
  CHECK(refusal("--stages 2000") ==
        "small: --stages: 2000 is not allowed; give --stages 1 to 1024\n");
  CHECK(refusal("--stages 0") == "small: --stages: 0 is not allowed; give --stages 1 to 1024\n");
  CHECK(refusal("--stages 4 --micro-batches 17").find("micro_batches: 17 is not allowed") !=
        std::string::npos);
}

TEST_CASE("--schedule takes a name of the catalogue, and interleaved has two chunks by default") {
  const auto pipeline = [](const std::string& flags) {
    const Parsed line = parsed(small(), flags);
    CHECK(line.error == "");
    return line.plan.pipeline;
  };
  CHECK(pipeline("--stages 2") == plan::Pipeline{2, "1f1b", 1, "", {}});
  CHECK(pipeline("--stages 2 --schedule 2bw") == plan::Pipeline{2, "2bw", 1, "", {}});
  CHECK(pipeline("--stages 2 --schedule interleaved") ==
        plan::Pipeline{2, "interleaved", 2, "", {}});
  CHECK(pipeline("--stages 2 --schedule interleaved --chunks 3").chunks == 3);
  CHECK(pipeline("--stages 2 --schedule zb_v") == plan::Pipeline{2, "zb_v", 2, "", {}});
  const Scenario three = small().stages(2).pipeline_schedule("interleaved", 3);
  CHECK(parsed(three, "--schedule zb_v").plan.pipeline.chunks == 2);
  CHECK(parsed(three, "--schedule interleaved_zb").plan.pipeline.chunks == 3);
  CHECK(small().stages(2).pipeline_schedule("zb_v").plan().pipeline.chunks == 2);
  CHECK(refusal("--stages 2 --schedule 1f1c") ==
        "small: --schedule: there is no schedule \"1f1c\"; did you mean \"1f1b\"?\n");
}

TEST_CASE("pipeline flags require stages") {
  const std::string advice =
      ": each worker trains the whole model; add --stages, or leave it out\n";
  CHECK(refusal("--schedule 2bw") == "small: --schedule" + advice);
  CHECK(refusal("--pipelines 2") == "small: --pipelines" + advice);
  CHECK(refusal("--split 0,1-2").find("give --stages 2, or no split") != std::string::npos);
  CHECK(refusal("--chunks 2").find("give --stages 2 or more, or --chunks 1") != std::string::npos);
  CHECK(refusal("--recompute 0").find("give --stages 2 or more") != std::string::npos);
}

TEST_CASE("--recompute takes all, none or stages, and --split chunks or none") {
  const auto recompute = [](const std::string& flags) {
    return parsed(small(), "--stages 3 --recompute " + flags).plan.pipeline.recompute;
  };
  CHECK(recompute("all") == Stages{0, 1, 2});
  CHECK(recompute("none") == Stages{});
  CHECK(recompute("2,0") == Stages{0, 2});
  CHECK(refusal("--stages 3 --recompute 0,x") ==
        "small: --recompute: \"x\" is not a stage; give all, none, or stages such as 0,2\n");
  CHECK(refusal("--stages 3 --recompute 3") ==
        "small: pipeline.recompute: there is no stage 3; give stages from 0 to 2\n");
  CHECK(refusal("--stages 3 --recompute 1,1") ==
        "small: pipeline.recompute: give each stage once, in ascending order\n");
  CHECK(parsed(small(), "--stages 2 --split 0,1-2").plan.pipeline.split == "0,1-2");
  CHECK(parsed(with_pipelines(), "--split none").plan.pipeline.split == "");
}

TEST_CASE("stages and pipelines of a scenario set the number of workers") {
  const Plan plan = with_pipelines().plan();
  CHECK(plan.workers == 8);
  CHECK(plan.micro_batches == 8);
  CHECK(plan.pipeline == plan::Pipeline{4, "interleaved", 2, "0-1,2,3,4,5,6,7,8", {0, 1, 2, 3}});
  CHECK(small().pipelines(3).stages(2).plan().workers == 6);
  CHECK(small().stages(2).plan().workers == 2);
  CHECK(small().stages(2).workers(6).plan().workers == 6);
  CHECK(Scenario(plan, "").stages(3).plan().workers == 6);
  CHECK_FALSE(validate(small().stages(1 << 20).pipelines(1 << 20).plan()));
}

TEST_CASE("workers, chunks, split and recompute follow a flag that changes the stages") {
  const Parsed same = parsed(with_pipelines(), "--seed 2");
  CHECK(same.error == "");
  CHECK(same.plan.pipeline == with_pipelines().plan().pipeline);
  CHECK(same.plan.workers == 8);
  const Parsed two = parsed(with_pipelines(), "--stages 2");
  CHECK(two.plan.workers == 4);  // the number of pipelines does not change
  CHECK(two.plan.pipeline == plan::Pipeline{2, "interleaved", 2, "", {0, 1}});
  const Parsed flushed = parsed(with_pipelines(), "--schedule 1f1b --pipelines 1");
  CHECK(flushed.plan.workers == 4);
  CHECK(flushed.plan.pipeline == plan::Pipeline{4, "1f1b", 1, "", {0, 1, 2, 3}});
  const Parsed whole = parsed(with_pipelines(), "--stages 1");
  CHECK(whole.error == "");
  CHECK(whole.plan.workers == 2);
  CHECK(whole.plan.pipeline == plan::Pipeline{1, "interleaved", 1, "", {}});
  Scenario some = with_pipelines();
  some.recompute({0, 3});
  CHECK(parsed(some, "--stages 2").plan.pipeline.recompute == Stages{0});
}

TEST_CASE("fewer workers remove the stragglers and faults of missing workers") {
  Scenario scenario = small();
  scenario.straggler(slow(1, 2)).straggler(slow(3, 2)).fault(crashes(worker(3), at_seconds(1)));
  const Parsed line = parsed(scenario, "--stages 2");
  CHECK(line.error == "");
  CHECK(line.plan.stragglers == std::vector<plan::Straggler>{slow(1, 2)});
  CHECK(line.plan.faults.empty());
}

TEST_CASE("stragglers and faults of flags are added, and must name existing workers") {
  Scenario scenario = small();
  scenario.straggler(slow(3, 2))
      .straggler(slow_by_pareto(all_workers, 2))
      .fault(crashes(worker(3), at_seconds(1)))
      .fault(freezes(worker(1), at_seconds(1), 0.5));
  const Parsed line = parsed(scenario, "--stages 2 --slow 1:4x --fault 0:crash(1s)@2s");
  CHECK(line.error == "");
  CHECK(line.plan.stragglers ==
        std::vector<plan::Straggler>{slow_by_pareto(all_workers, 2), slow(1, 4)});
  CHECK(line.plan.faults == std::vector<plan::Fault>{freezes(worker(1), at_seconds(1), 0.5),
                                                     crashes(worker(0), at_seconds(2), 1)});
  CHECK(parsed(scenario, "--workers 2 --slow 1:4x").plan.stragglers.size() == 2);
  CHECK(parsed(scenario, "--stages 2 --slow 3:4x").error.find("there is no worker 3") !=
        std::string::npos);
  CHECK(parsed(scenario, "--stages 2 --fault 3:crash@2s").error.find("there is no worker 3") !=
        std::string::npos);
}

TEST_CASE("fewer workers remove faults whose peer is missing") {
  Scenario scenario = small();
  scenario.simulated().fault(
      fault(worker(0), at_seconds(1), plan::Partition{.with = {worker(3)}, .seconds = 1}));
  CHECK(parsed(scenario, "--workers 2").plan.faults.empty());
  CHECK(parsed(scenario, "--workers 5").plan.faults.size() == 1);
}

}  // namespace leeway::test
