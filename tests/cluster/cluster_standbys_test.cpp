// Standby shards on real processes: kill -9, nodes that start again, and nodes that leave.
#include <nlohmann/json.hpp>

#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

/// Nodes 1 and 2 have the shard and its standby; the workers are with the program.
std::vector<std::string> replicated_run(Nodes& nodes, const std::string& out) {
  return slow_run(nodes, out) +
         std::vector<std::string>{"--replicas", "2", "--place", "shards=1,standbys=2,workers=0"};
}

/// The shards of a job as `leeway status` shows them.
nlohmann::json shards_at(const std::string& program) {
  const auto shown = run_program({kBin + "/leeway", "status", program, "--json"});
  const auto json = nlohmann::json::parse(shown.out, nullptr, false);
  return json.is_object() && json.contains("shards") ? json["shards"] : nlohmann::json::array();
}
bool shows(const std::string& program, const std::string& primary, const std::string& standby) {
  return comes_true([&] {
    const auto shards = shards_at(program);
    return shards.size() == 1 && shards[0]["primary"] == primary &&
           shards[0]["standby"] == standby &&
           (standby == "-" ||
            shards[0]["state"].get<std::string>().find("in sync") != std::string::npos);
  });
}

}  // namespace

TEST_CASE("a killed shard is replaced by its standby, and its node gets a new standby") {
  Nodes nodes(2);
  const TemporaryFolder out;
  Listener program(replicated_run(nodes, out / "run"));
  REQUIRE(gets_going(out / "run"));
  REQUIRE(shows(program.name(), "1", "2"));

  const std::string first = nodes[0].name();
  nodes[0].process().signal(SIGKILL);
  REQUIRE(program.prints("shard 0 ended: node " + first + " is gone"));
  REQUIRE(program.prints("the standby of shard 0 has taken over"));
  REQUIRE(shows(program.name(), "2", "-"));
  // The service manager starts the node again, and the program calls it.
  nodes.add({kBin + "/leeway", "node", "--listen", first, "--silence", kLongSilence});
  REQUIRE(program.prints("shard 0 has a standby again"));
  REQUIRE(shows(program.name(), "2", "3"));

  nodes[1].process().signal(SIGKILL);
  REQUIRE(shows(program.name(), "3", "-"));
  interrupt_later(program.process(), out / "run", 10000);
  check_trained_once(out / "run", 10000);
}

TEST_CASE("a node with a shard leaves, and its shard continues on another node") {
  Nodes nodes(3);
  const TemporaryFolder out;
  Listener program(replicated_run(nodes, out / "run"));
  REQUIRE(gets_going(out / "run"));
  nodes[0].process().signal(SIGINT);
  check_ends(nodes[0].process(), 0);
  CHECK_THAT(nodes[0].process().err(),
             Contains("leaving the job of") && Contains("its actors here have left it"));
  REQUIRE(shows(program.name(), "2", "3"));
  // The last two: one keeps the shard until another node can have it.
  nodes[2].process().signal(SIGINT);
  check_ends(nodes[2].process(), 0);
  nodes[1].process().signal(SIGINT);
  REQUIRE(nodes[1].prints("still has a shard"));
  nodes.add({kBin + "/leeway", "join", program.name(), "--listen", "127.0.0.1:0", "--silence",
             kLongSilence});
  check_ends(nodes[1].process(), 0);
  REQUIRE(shows(program.name(), "4", "-"));
  interrupt_later(program.process(), out / "run", 10000);
  check_trained_once(out / "run", 10000);
}

}  // namespace leeway::test
