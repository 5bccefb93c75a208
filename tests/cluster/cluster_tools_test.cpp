// Starting and examining the nodes of a cluster: `leeway doctor`, --at-least, logs and service
// managers.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

using Catch::StartsWith;

/// An address at which no process listens.
std::string free_address() {
  Nodes nodes(1);
  return nodes[0].name();
}

std::vector<std::string> node_at(const std::string& address) {
  return {kBin + "/leeway", "node", "--listen", address, "--silence", kLongSilence};
}

/// Receives what a process sends to its service manager.
class ServiceManager {
 public:
  ServiceManager() : path_(folder_ / "notify"), socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto size = static_cast<socklen_t>(sizeof address);
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    timeval limit{.tv_sec = 60, .tv_usec = 0};
    REQUIRE(setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  }
  ~ServiceManager() { close(socket_); }
  const std::string& path() const { return path_; }
  std::string receive() {
    char text[1024];
    const ssize_t size = recv(socket_, text, sizeof text, 0);
    return size < 0 ? "" : std::string(text, static_cast<std::size_t>(size));
  }

 private:
  TemporaryFolder folder_;
  const std::string path_;
  const int socket_;
};

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

TEST_CASE(
    "a program starts with the nodes that answer, and another takes its workers when it runs") {
  TemporaryFolder folder;
  Nodes nodes(1);
  const std::string later = free_address();
  const std::string all = nodes.text() + "," + later;
  const auto without = run_program(slow_run(all, folder / "without"));
  CHECK(without.code == 2);
  CHECK_THAT(without.err, Contains(later + ": no process listens there"));
  Process program(slow_run(all, folder / "run") +
                  std::vector<std::string>{"--at-least", "1", "--place", "shards=2,workers=1+2"});
  REQUIRE(gets_going(folder / "run"));
  CHECK_THAT(program.err(), Contains("starts without node " + later + ", and calls it again"));
  Listener node(node_at(later));
  CHECK(comes_true([&] {
    return program.err().find("worker 1 continues at node " + later) != std::string::npos;
  }));
  program.signal(SIGINT);
  CHECK(program.wait() == 130);
}

TEST_CASE("a run on nodes with IPv6 addresses, which print them in brackets") {
  Nodes nodes(0);
  for (int i = 0; i < 2; ++i) nodes.add(node_at("[::1]:0"));
  CHECK_THAT(nodes[0].name(), StartsWith("[::1]:"));
  const auto finished = run_program({kBin + "/linear-regression", "--nodes", nodes.text(),
                                     "--workers", "2", "--epochs", "3", "--no-out"});
  INFO(finished.err);
  CHECK_THAT(finished.out, Contains("finished"));
  CHECK_THAT(finished.err, Contains("node 2 is " + nodes[1].name()));
  CHECK(nodes.all_free());
}

#if !defined(__SANITIZE_ADDRESS__)  // its checks need descriptors as well
TEST_CASE("a node whose file descriptors are used up by silent callers is reached after them") {
  Nodes nodes(0);
  const std::string command = "ulimit -n 40; exec " + join(node_at("127.0.0.1:0"), " ");
  nodes.add({"/bin/sh", "-c", command});
  const std::string address = nodes[0].name();
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  std::vector<int> callers;
  for (int i = 0; i < 60; ++i) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    callers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    connect(callers.back(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  CHECK(comes_true([&] { return run_program({kBin + "/leeway", "status", address}).code == 0; }));
  for (const int caller : callers) close(caller);
}
#endif

TEST_CASE("a node reports to its service manager when it listens and when it ends") {
  ServiceManager manager;
  Process node(std::vector<std::string>{"/usr/bin/env", "NOTIFY_SOCKET=" + manager.path()} +
               node_at("127.0.0.1:0"));
  CHECK_THAT(manager.receive(), Contains("READY=1\nSTATUS=listening on 127.0.0.1:"));
  node.signal(SIGTERM);
  CHECK(manager.receive() == "STOPPING=1");
  CHECK(node.wait() == 0);
}

TEST_CASE("with --log json each line of a node is an object with time, level and address") {
  TemporaryFolder folder;
  Nodes nodes(0);
  nodes.add(node_at("127.0.0.1:0") + std::vector<std::string>{"--log", "json"});
  std::string address;
  const auto lines = [&] {
    std::vector<nlohmann::json> all;
    std::istringstream text(nodes[0].process().err());
    for (std::string line; std::getline(text, line);)
      all.push_back(nlohmann::json::parse(line, nullptr, false));
    return all;
  };
  REQUIRE(comes_true([&] { return !lines().empty() && lines()[0].is_object(); }));
  CHECK(lines()[0]["level"] == "info");
  address = lines()[0]["node"];
  CHECK(lines()[0]["text"] == "listening on " + address);
  CHECK_THAT(lines()[0]["time"].get<std::string>(), Catch::Matches("20..-..-..T..:..:..\\....Z"));
  // A second job is refused, which is a warning.
  Process program(slow_run(address, folder / "run"));
  REQUIRE(gets_going(folder / "run"));
  CHECK(run_program(slow_run(address, folder / "second")).code == 2);
  CHECK(comes_true([&] {
    return std::ranges::any_of(lines(), [](const auto& line) {
      return line.is_object() && line["level"] == "warning" &&
             line["text"].template get<std::string>().starts_with("refused the job");
    });
  }));
  program.signal(SIGINT);
  CHECK(program.wait() == 130);
  // An agent that cannot listen says so in the same form.
  const auto refused = run_program(node_at(address) + std::vector<std::string>{"--log", "json"});
  CHECK(refused.code == 2);
  CHECK(nlohmann::json::parse(refused.err)["level"] == "error");
}

}  // namespace leeway::test
