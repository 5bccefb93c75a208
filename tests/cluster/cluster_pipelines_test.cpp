// Pipelines over real processes: their weights, and the effect of processes that end.
#include <optional>
#include <set>

#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

constexpr std::int64_t kPipelineSamples = 2000;

/// Writes a plan of two pipelines: workers 0 and 1, workers 2 and 3. Returns its file.
std::string plan_in(const TemporaryFolder& folder) {
  const std::string file = folder / "plan.toml";
  std::ofstream(file) << "name = \"piped\"\nworkers = 4\nshards = 2\nbatch = 16\n"
                         "micro_batches = 4\nstop.epochs = 2\n"
                         "data.synthetic = { samples = "
                      << kPipelineSamples
                      << ", test_samples = 100, clusters = { classes = 3, features = 20 } }\n"
                         "model = [{ linear.outputs = 32 }, \"relu\", { linear.outputs = 32 }, "
                         "\"relu\", { dropout.probability = 0.1 }, { linear.outputs = 3 }]\n"
                         "pipeline = { stages = 2 }\n";
  return file;
}

/// Each operation takes a millisecond. The shards and pipeline 0 are on node 1. The first stage of
/// pipeline 1 is on node 2, the second on node 3.
std::vector<std::string> slow_pipelines(Nodes& nodes, const TemporaryFolder& folder) {
  return {kBin + "/leeway",
          "run",
          plan_in(folder),
          "--nodes",
          nodes.text(),
          "--place",
          "shards=1,workers=1,worker2=2,worker3=3",
          "--staleness",
          "2",
          "--slow",
          "all:pauses(1ms/1)",
          "--epochs",
          kEndless,
          "--silence",
          kLongSilence,
          "--trace-json",
          "--out",
          folder / "run"};
}

bool gets_going(const TemporaryFolder& folder) {
  return comes_true([&] { return samples_so_far(folder / "run") > 400; });
}

/// The rows of workers in result.json.
nlohmann::json workers_of(const TemporaryFolder& folder) {
  return read_json(folder / "run/result.json")["workers"];
}

}  // namespace

TEST_CASE("pipelines over three nodes give the weights of pipelines in one process") {
  TemporaryFolder folder;
  Nodes nodes(3);
  const std::string plan = plan_in(folder);
  const auto weights = [&](const std::string& name, const std::vector<std::string>& flags) {
    const auto result = run_program(std::vector{kBin + "/leeway", "run"s, plan, "--quiet"s,
                                                "--staleness"s, "bsp"s, "--out"s, folder / name} +
                                    flags);
    INFO(result.err);
    REQUIRE(result.code == 0);
    return read_text(folder / (name + "/weights.safetensors"));
  };
  const std::string workers = weights("workers", {"--stages", "1", "--workers", "2"});
  CHECK(workers.size() > 100);
  for (const std::string schedule :
       {"1f1b", "gpipe", "interleaved", "zb_h1", "interleaved_zb", "zb_v"}) {
    INFO(schedule);
    CHECK(weights(schedule, {"--schedule", schedule}) == workers);
    CHECK(weights(schedule + "-nodes", {"--schedule", schedule, "--nodes", nodes.text()}) ==
          workers);
  }
  CHECK(nodes.all_free());
}

TEST_CASE(
    "a pipeline whose stage's process is killed ends, and starts again with a node that joins") {
  const bool joins = GENERATE(false, true);
  TemporaryFolder folder;
  Nodes nodes(3);
  Listener program(slow_pipelines(nodes, folder));
  REQUIRE(gets_going(folder));
  nodes[2].process().signal(SIGKILL);
  REQUIRE(program.prints("node " + nodes[2].name() + " is gone"));
  // Worker 2 may end first, when its node reports that it cannot reach the other.
  REQUIRE(program.prints("pipeline 1 (workers 2 to 3) ended and was evicted: worker "));
  std::optional<Listener> joined;
  if (joins) {
    joined.emplace(std::vector<std::string>{kBin + "/leeway", "join", program.name(), "--listen",
                                            "127.0.0.1:0"});
    CHECK(program.prints("worker 3 continues at node " + joined->name()));
    CHECK(program.prints("pipeline 1 (workers 2 to 3) is back"));
  }
  interrupt_later(program.process(), folder / "run", kPipelineSamples);
  if (joined) check_ends(joined->process(), 0);
  check_trained_once(folder / "run", kPipelineSamples);
  const auto lead = workers_of(folder)[2];
  CHECK(lead.contains("came_back_after") == joins);
  CHECK(lead.contains("ended") != joins);
}

TEST_CASE("a pipeline whose node leaves returns when another node joins") {
  TemporaryFolder folder;
  Nodes nodes(3);
  Listener program(slow_pipelines(nodes, folder));
  REQUIRE(gets_going(folder));
  nodes[2].process().signal(SIGINT);
  check_ends(nodes[2].process(), 0);
  CHECK_THAT(nodes[2].process().err(), Contains("its actors here have left it"));
  Listener joined({kBin + "/leeway", "join", program.name(), "--listen", "127.0.0.1:0"});
  CHECK(program.prints("worker 3 continues at node " + joined.name()));
  // The other stage has stopped too, and is launched again on the same node.
  CHECK(program.prints("worker 2 continues at node " + nodes[1].name()));
  CHECK(program.prints("pipeline 1 (workers 2 to 3) is back"));
  interrupt_later(program.process(), folder / "run", kPipelineSamples);
  check_ends(joined.process(), 0);
  check_trained_once(folder / "run", kPipelineSamples);
  CHECK(read_json(folder / "run/result.json")["partial_pushes"] == 0);
}

TEST_CASE(
    "status names the pipeline and stage of each worker, and the trace the chunks of the model") {
  TemporaryFolder folder;
  Nodes nodes(3);
  Listener program(slow_pipelines(nodes, folder));
  REQUIRE(gets_going(folder));
  const auto status_of = [&](std::vector<std::string> flags) {
    Finished status;
    CHECK(comes_true([&] {
      status = run_program(std::vector{kBin + "/leeway", "status"s, nodes[0].name()} + flags);
      return status.code == 0;
    }));
    return status.out;
  };
  CHECK_THAT(status_of({}), Contains("pipeline  stage  worker  clock  last operation") &&
                                Contains(" of micro-batch "));
  const auto json = nlohmann::json::parse(status_of({"--json"}));
  REQUIRE(json["workers"].size() == 4);
  CHECK(json["workers"][3]["pipeline"] == 1);
  CHECK(json["workers"][3]["stage"] == 1);
  CHECK_THAT(json["workers"][3]["did"].get<std::string>(), Contains(" of iteration "));
  program.process().signal(SIGINT);
  check_ends(program.process(), 130);
  std::set<std::int64_t> chunks;
  std::istringstream lines(read_text(folder / "run/events.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event["event"] == "stage_computed") chunks.insert(event.at("chunk").get<std::int64_t>());
  }
  CHECK(chunks == std::set<std::int64_t>{0, 1});
}

}  // namespace leeway::test
