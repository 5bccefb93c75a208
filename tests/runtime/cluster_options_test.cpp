#include "runtime/cluster/options.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "leeway.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;
using namespace std::string_literals;
using Names = std::vector<std::string>;

CommandLine parsed(std::vector<std::string> flags) {
  Scenario scenario("line", "A line.");
  scenario.data(line(3, 2, 0.1, 100)).model({linear(1)}).loss(mean_squared_error());
  flags.insert(flags.begin(), "line");
  std::vector<char*> argv;
  for (auto& flag : flags) argv.push_back(flag.data());
  return parse(scenario, static_cast<int>(argv.size()), argv.data());
}

/// Sets an environment variable while it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("nodes must be listed once, and without TLS have loopback addresses") {
  const auto problem = [](Names nodes, const std::string& tls) {
    ClusterOptions options;
    options.nodes = std::move(nodes);
    options.tls = tls;
    const auto status = check_nodes(options);
    return status ? "" : status.error().text;
  };
  CHECK(problem({"127.0.0.1:1", "[::1]:1", "localhost:1"}, "") == "");
  CHECK(problem({"10.0.0.2:1", "gpu-1:1"}, "keys") == "");
  CHECK_THAT(problem({"127.0.0.1:1", "10.0.0.2:1"}, ""),
             Contains("node 10.0.0.2:1 is not at a loopback address") && Contains("--tls DIR"));
  CHECK_THAT(problem({"nosuch.invalid:4242"}, ""),
             StartsWith("node nosuch.invalid:4242: nosuch.invalid has no address: ") &&
                 EndsWith("; check the name") && !Contains("loopback"));
  CHECK_THAT(problem({"a:1", "b:1", "a:1"}, "keys"), Contains("node a:1 is named twice"));
}

TEST_CASE("nodes are read from a list and from a file with comments") {
  CHECK(*parse_nodes("a:4242, 10.0.0.2:1,[::1]:65535") ==
        Names{"a:4242", "10.0.0.2:1", "[::1]:65535"});
  for (const char* wrong : {"", "a", "a:", ":1", "a:65536", "a:1,", "a:1x", "::1:5"}) {
    const auto nodes = parse_nodes(wrong);
    INFO(wrong);
    REQUIRE_FALSE(nodes);
    CHECK_THAT(nodes.error().text,
               Contains(wrong == "a:65536"s ? "give 65535 at most" : "give HOST:PORT"));
  }
  TemporaryFolder folder;
  std::ofstream(folder / "hosts") << "# the cluster\na:1\n\n  b:2  # the slow one\n";
  CHECK(*nodes_from_file(folder / "hosts") == Names{"a:1", "b:2"});
  std::ofstream(folder / "wrong") << "a:1\nb\n";
  CHECK_THAT(nodes_from_file(folder / "wrong").error().text, Contains("wrong:2: \"b\""));
  std::ofstream(folder / "none") << "# no nodes\n";
  CHECK_THAT(nodes_from_file(folder / "none").error().text, Contains("contains no nodes"));
  CHECK_THAT(nodes_from_file(folder / "missing").error().text, Contains("cannot be read"));
  CHECK_THAT(nodes_from_file(folder / "").error().text, Contains("is a folder; give a file"));
}

TEST_CASE("silence, port and transport are read, or refused with the allowed values") {
  CHECK(*parse_silence("500ms") == milliseconds(500));
  CHECK(*parse_silence("2s") == seconds(2));
  for (const char* wrong : {"", "2", "1ms", "2h", "700s", "-1s", "2s "})
    CHECK_THAT(parse_silence(wrong).error().text, Contains("give 50ms to 600s"));
  CHECK(*parse_port("65535") == 65535);
  for (const char* wrong : {"", "65536", "99999", "-1", "a", "1 "})
    CHECK_THAT(parse_port(wrong).error().text, Contains("give 1 to 65535, or 0"));
  CHECK(*parse_transport("shm") == Transport::shared_memory);
  CHECK_THAT(parse_transport("udp").error().text, Contains("auto, tcp or shm"));
}

TEST_CASE("cluster flags set the options of a run") {
  const auto line = parsed({"--nodes", "a:1,b:2", "--place", "shard0=1", "--silence", "1s",
                            "--port", "77", "--transport", "tcp", "--tls", "keys"});
  REQUIRE_FALSE(line.exit_code);
  const ClusterOptions& cluster = *line.options.cluster;
  CHECK(cluster.nodes == Names{"a:1", "b:2"});
  CHECK(cluster.place == "shard0=1");
  CHECK(cluster.silence == seconds(1));
  CHECK(cluster.port == 77);
  CHECK(cluster.transport == Transport::tcp);
  CHECK(cluster.tls == "keys");
  CHECK(parsed({}).options.cluster->nodes.empty());
  // Cluster flags require --nodes, a valid port, and not both --nodes and --hosts.
  CHECK(parsed({"--place", "shard0=1"}).exit_code == 2);
  CHECK(parsed({"--nodes", "a:1", "--port", "99999"}).exit_code == 2);
  CHECK(parsed({"--nodes", "a:1", "--hosts", "file"}).exit_code == 2);
}

TEST_CASE("a program starts with at least one and at most all of its nodes") {
  const auto at_least = [](const char* value) {
    return parsed({"--nodes", "127.0.0.1:1,127.0.0.1:2", "--at-least", value});
  };
  CHECK(at_least("2").options.cluster->at_least == 2);
  CHECK(parsed({}).options.cluster->at_least == 0);
  for (const char* value : {"0", "3", "-1", "two"}) CHECK(at_least(value).exit_code == 2);
  CHECK(parsed({"--at-least", "1"}).exit_code == 2);
}

TEST_CASE("with TLS a program listens on all addresses, of IPv6 too if a node has one") {
  CHECK(mesh_options({.nodes = {"[::1]:1"}}).address == "127.0.0.1");
  CHECK(mesh_options({.nodes = {"a:1"}, .tls = "keys"}).address == "0.0.0.0");
  CHECK(mesh_options({.nodes = {"a:1", "[fd00::2]:1"}, .tls = "keys"}).address == "::");
}

TEST_CASE("LEEWAY_NODES names the nodes, unless a flag does or the run is simulated") {
  const Variable nodes("LEEWAY_NODES", "a:1");
  CHECK(parsed({}).options.cluster->nodes == Names{"a:1"});
  CHECK(parsed({"--nodes", "b:2"}).options.cluster->nodes == Names{"b:2"});
  CHECK(parsed({"--simulate"}).options.cluster->nodes.empty());
}

TEST_CASE("with nodes, a simulation, a profile and an invalid placement are refused") {
  Plan plan = parsed({}).plan;
  RunOptions options{.quiet = true};
  ClusterOptions cluster{.nodes = {"127.0.0.1:1"}};
  options.cluster = std::make_shared<const ClusterOptions>(cluster);
  options.profile = true;
  CHECK_THAT(run(plan, options).error, Contains("--profile"));
  options.profile = false;
  cluster.place = "worker9=1";
  options.cluster = std::make_shared<const ClusterOptions>(cluster);
  CHECK_THAT(run(plan, options).error, Contains("--place"));
  plan.simulated = plan::World{};
  CHECK_THAT(run(plan, options).error, Contains("--simulate"));
}

}  // namespace leeway::test
