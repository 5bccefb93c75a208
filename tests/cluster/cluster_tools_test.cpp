// Starting the nodes of a cluster: --at-least, addresses, logs and service managers.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

using Catch::StartsWith;

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

#ifdef LEEWAY_FAULTY_DISK
TEST_CASE("a run goes on when the disk of a node with a shard is full, and names the node") {
  TemporaryFolder folder;
  Nodes nodes(0);
  nodes.add(std::vector<std::string>{
                "/usr/bin/env", "LD_PRELOAD=" LEEWAY_FAULTY_DISK,
                "LEEWAY_FAULTY_DISK=" + (folder / "checkpoints") + " write 0 fails"} +
            node_at("127.0.0.1:0"));
  const auto finished =
      run_program(slow_run(nodes, folder / "run", "5") +
                  std::vector<std::string>{"--checkpoint-every", "1ep", "--checkpoint-dir",
                                           folder / "checkpoints"});
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_THAT(finished.err, Contains("No space left on device") && Contains(nodes[0].name()));
  check_trained_once(folder / "run", 10000, 5);
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
