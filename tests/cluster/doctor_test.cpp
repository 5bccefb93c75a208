// `leeway doctor`: tables of nodes and connections, problems and warnings.
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cluster/machine.hpp"
#include "cluster/node_name.hpp"
#include "cluster/process.hpp"
#include "core/this_host.hpp"
#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

/// A process that answers as a node on the machine `machine`, on its own thread.
class NodeOf {
 public:
  explicit NodeOf(node::Machine machine) : machine_(std::move(machine)) {
    REQUIRE(process_.open({}, open_mesh));
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) process_.poll(leeway::milliseconds(20));
    });
  }
  ~NodeOf() {
    thread_ = {};
    process_.close();
  }
  std::string name() const { return node_name(process_.mesh().address(), process_.mesh().port()); }

 private:
  void received(PeerId peer, const node::Body& body) {
    if (std::holds_alternative<node::MachineRequest>(body)) {
      node::Machine machine = machine_;
      machine.wall_ns += this_machine("").wall_ns;
      process_.send(peer, 0, machine);
    } else if (const auto* ping = std::get_if<node::Ping>(&body)) {
      process_.send(peer, 0, node::Pong{ping->ns});
    } else if (const auto* load = std::get_if<node::Load>(&body)) {
      process_.send(peer, 0, node::Loaded{load->number});
    } else if (const auto* measure = std::get_if<node::Measure>(&body)) {
      process_.send(peer, 0, node::Measured{.name = measure->name, .error = "no route to host"});
    }
  }

  const node::Machine machine_;  // wall_ns: how far its clock is ahead
  leeway::Process process_{
      {.received = [this](PeerId peer, std::uint64_t, node::Body& body) { received(peer, body); },
       .silent = [](PeerId) {},
       .heard = [](PeerId) {},
       .gone = [](PeerId, const std::string&) {},
       .note = [](const std::string&) {}}};
  std::jthread thread_;
};

std::string text_of(const nlohmann::json& list) {
  std::string text;
  for (const auto& each : list) text += each.get<std::string>() + "\n";
  return text;
}

}  // namespace

TEST_CASE("leeway doctor shows machines and measures the connections of all pairs of nodes") {
  Nodes nodes(3);
  const auto healthy = run_program({kBin + "/leeway", "doctor", nodes.text(), "--json"});
  INFO(healthy.out << healthy.err);
  REQUIRE(healthy.code == 0);
  const auto json = nlohmann::json::parse(healthy.out);
  REQUIRE(json["nodes"].size() == 3);
  CHECK(json["nodes"][1]["name"] == nodes[1].name());
  CHECK(json["nodes"][1]["cores"] > 0);
  CHECK(json["nodes"][1]["job"].is_null());
  CHECK(json["problems"].empty());
  std::set<std::pair<int, int>> pairs;
  for (const auto& link : json["links"]) {
    CHECK(link["round_trip_seconds"] > 0);
    CHECK(link["shared_memory"] == true);
    pairs.emplace(link["from"], link["to"]);
  }
  CHECK(pairs == std::set<std::pair<int, int>>{
                     {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 1}, {2, 3}, {3, 1}, {3, 2}});
  const auto table = run_program({kBin + "/leeway", "doctor", nodes.text(), "--transport", "tcp"});
  CHECK(table.code == 0);
  CHECK_THAT(table.out,
             Contains("free") && Contains("Round trip in us") && Contains("No problems"));
}

TEST_CASE("leeway doctor names a node without an answer and its remedy, and a busy node's job") {
  TemporaryFolder folder;
  Nodes nodes(1);
  const std::string missing = free_address();
  Process program(slow_run(nodes, folder / "run"));
  REQUIRE(gets_going(folder / "run"));
  const auto found = run_program({kBin + "/leeway", "doctor", nodes.text() + "," + missing});
  CHECK(found.code == 1);
  CHECK_THAT(found.out, Contains("hosts the job of linear-regression") && Contains("no answer") &&
                            Contains(missing + ": no process listens there") &&
                            Contains("`leeway node --listen " + missing + "`"));
  program.signal(SIGINT);
  CHECK(program.wait() == 130);
}

TEST_CASE("leeway doctor refuses a list without nodes") {
  const auto refused = run_program({kBin + "/leeway", "doctor"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("leeway doctor a:4242,b:4242"));
}

TEST_CASE("leeway doctor warns of another clock, and names another version and a one-way link") {
  Nodes nodes(1);
  const std::string real = nodes[0].name();
  node::Machine machine;
  machine.version = "0.0.1";
  machine.cores = 3;
  machine.wall_ns = seconds(90).ns;
  const NodeOf other(machine);
  const auto found = run_program({kBin + "/leeway", "doctor", real + "," + other.name(), "--json"});
  INFO(found.out << found.err);
  CHECK(found.code == 1);
  const auto json = nlohmann::json::parse(found.out);
  CHECK(json["nodes"][1]["cores"] == 3);
  CHECK(json["nodes"][1]["clock_ahead_seconds"] == Approx(90).margin(20));
  REQUIRE(json["warnings"].size() == 1);
  CHECK_THAT(text_of(json["warnings"]), Contains("the clock of " + other.name() + " is ") &&
                                            Contains("s ahead; let NTP set both clocks"));
  const std::string problems = text_of(json["problems"]);
  CHECK_THAT(problems, Contains(other.name() + " has Leeway 0.0.1, this machine has ") &&
                           Contains("use the same version everywhere"));
  CHECK_THAT(problems, Contains(other.name() + " does not reach " + real + ": no route to host"));
  CHECK_THAT(problems, !Contains(real + " does not reach"));
}

TEST_CASE("leeway doctor shows when certificates expire, and warns of one that soon does") {
  TemporaryFolder folder;
  const auto make = [&](const std::string& name, const std::string& days) {
    REQUIRE(run_program({kBin + "/leeway", "cert", folder / "tls", "--node", name, "--days", days})
                .code == 0);
    return folder / ("tls/" + name);
  };
  Nodes nodes(0);
  for (const auto& [name, days] : {std::pair("late", "400"), std::pair("soon", "3")})
    nodes.add({kBin + "/leeway", "node", "--listen", "127.0.0.1:0", "--tls", make(name, days)});
  const auto found = run_program(
      {kBin + "/leeway", "doctor", nodes.text(), "--tls", make("here", "400"), "--json"});
  INFO(found.out << found.err);
  CHECK(found.code == 0);
  const auto json = nlohmann::json::parse(found.out);
  CHECK_THAT(json["nodes"][0]["certificate_until"].get<std::string>(),
             Catch::Matches("20..-..-.."));
  REQUIRE(json["warnings"].size() == 1);
  CHECK_THAT(text_of(json["warnings"]), Contains(nodes[1].name() + ": ") && Contains("expires"));
}

}  // namespace leeway::test
