// Clusters of real processes on loopback: what a user does, and what happens to the processes.
#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "core/text.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

using Catch::Contains;
using namespace std::string_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kBin = LEEWAY_BIN;

template <class Condition>
bool comes_true(Condition condition, seconds limit = seconds(20)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return condition();
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

/// A process that says where it listens.
class Listener {
 public:
  explicit Listener(std::vector<std::string> arguments) : process_(std::move(arguments)) {}
  /// "" when it has not said so in time.
  std::string name() {
    const std::string mark = "listening on ";
    const auto find = [&] {
      const std::string text = process_.err();
      const auto at = text.find(mark);
      if (at == std::string::npos) return std::string();
      const auto begin = at + mark.size();
      const auto end = text.find_first_of(" \n", begin);
      if (end == std::string::npos) return std::string();
      std::string found = text.substr(begin, end - begin);
      if (found.ends_with(':')) found.pop_back();
      return found;
    };
    comes_true([&] { return !find().empty(); });
    return find();
  }
  bool says(const std::string& text) {
    return comes_true([&] { return process_.err().find(text) != std::string::npos; });
  }
  Process& process() { return process_; }

 private:
  Process process_;
};

/// Node agents, and what a program is told of them.
class Nodes {
 public:
  explicit Nodes(int count) {
    for (int i = 0; i < count; ++i) add({kBin + "/leeway", "node", "--listen", "127.0.0.1:0"});
  }
  void add(std::vector<std::string> arguments) {
    nodes_.push_back(std::make_unique<Listener>(std::move(arguments)));
  }
  std::string text() {
    std::vector<std::string> names;
    for (const auto& node : nodes_) names.push_back(node->name());
    return join(names, ",");
  }
  Listener& operator[](std::size_t index) { return *nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }
  /// All say that they are free, the last thing that they said.
  bool all_free() {
    return comes_true([&] {
      for (const auto& node : nodes_)
        if (!node->process().err().ends_with("free\n")) return false;
      return true;
    });
  }

 private:
  std::vector<std::unique_ptr<Listener>> nodes_;
};

std::vector<std::string> operator+(std::vector<std::string> all,
                                   const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Of a run that ends when the test ends it.
const std::string kEndless = "1000";

/// linear-regression with three workers, each of whose iterations takes some milliseconds.
std::vector<std::string> slow_run(Nodes& nodes, const std::string& out,
                                  const std::string& epochs = "3") {
  return {kBin + "/linear-regression",
          "--nodes",
          nodes.text(),
          "--staleness",
          "2",
          "--workers",
          "3",
          "--batch",
          "16",
          "--slow",
          "all:pauses(4ms/1)",
          "--epochs",
          epochs,
          "--trace",
          "--out",
          out};
}

std::uint64_t samples_so_far(const std::string& folder) {
  std::istringstream lines(read_text(folder + "/metrics.jsonl"));
  std::uint64_t samples = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("samples")) samples = json["samples"];
  }
  return samples;
}

bool gets_going(const std::string& folder) {
  return comes_true([&] { return samples_so_far(folder) > 2000; });
}

/// By the events of all nodes: each sample of each epoch once.
void check_trained_once(const std::string& folder, std::int64_t epochs, std::int64_t samples) {
  std::istringstream lines(read_text(folder + "/events.jsonl"));
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> ranges;  // by epoch
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] != "trained") continue;
    const auto added = ranges[json["epoch"]].emplace(json["value"], json["value2"]);
    CHECK(added.second);
  }
  CHECK(static_cast<std::int64_t>(ranges.size()) == epochs);
  for (const auto& [epoch, parts] : ranges) {
    std::int64_t at = 0;
    for (const auto& [begin, end] : parts) {
      CHECK(begin == at);
      at = end;
    }
    CHECK(at == samples);
  }
}

/// Ends of itself, with that code.
void check_ends(Process& process, int code, seconds limit = seconds(60)) {
  const auto ended = process.wait_up_to(limit);
  INFO(process.out() << process.err());
  REQUIRE(ended);
  CHECK(*ended == code);
}

}  // namespace

TEST_CASE("runs on three nodes, one after the other, give the weights of a run in one process") {
  Nodes nodes(2);
  nodes.add({kBin + "/linear-regression", "node", "--listen", "127.0.0.1:0"});
  for (const std::string scenario : {"linear-regression", "fashion-mlp"}) {
    TemporaryFolder folder;
    std::vector<std::string> flags = {"--staleness", "bsp", "--slow", "none", "--quiet"};
    if (scenario == "fashion-mlp")
      flags = flags + std::vector<std::string>{"--iterations", "60", "--evaluate-every", "0"};
    const auto here =
        run_program(std::vector{kBin + "/" + scenario, "--out"s, folder / "here"} + flags);
    REQUIRE(here.code == 0);
    const auto there = run_program(
        std::vector{kBin + "/" + scenario, "--out"s, folder / "there", "--nodes"s, nodes.text()} +
        flags);
    INFO(there.err);
    REQUIRE(there.code == 0);
    const std::string weights = read_text(folder / "here/weights.safetensors");
    CHECK(weights.size() > 100);
    CHECK(read_text(folder / "there/weights.safetensors") == weights);
    CHECK(nodes.all_free());
  }
}

TEST_CASE("a second program is told whose job the nodes have, and a missing node is named") {
  TemporaryFolder folder;
  Nodes nodes(2);
  Process first(slow_run(nodes, folder / "first", kEndless));
  REQUIRE(gets_going(folder / "first"));
  const auto second = run_program(slow_run(nodes, folder / "second"));
  CHECK(second.code == 2);
  CHECK_THAT(second.err, Contains("2 of 2 nodes cannot take part") &&
                             Contains("it has been hosting the job of linear-regression (process"));
  const auto third = run_program(
      {kBin + "/linear-regression", "--nodes", nodes[0].name() + ",127.0.0.1:1", "--no-out"});
  CHECK(third.code == 2);
  CHECK_THAT(third.err, Contains("127.0.0.1:1"));
  first.signal(SIGINT);
  check_ends(first, 130);
  CHECK(nodes.all_free());
}

TEST_CASE("data that a node does not find is sent to it") {
  TemporaryFolder folder;
  {
    std::ofstream csv(folder / "data.csv");
    csv << "x,y,label\n";
    for (int i = 0; i < 500; ++i) csv << i % 7 << ',' << i % 5 << ',' << (i % 7 > 3) << '\n';
    std::ofstream plan(folder / "plan.toml");
    plan << "name = \"sent\"\nworkers = 2\nshards = 1\nbatch = 10\nstop.epochs = 2\n"
            "model = [{ linear.outputs = 2 }]\ndata.csv.train = \"data.csv\"\n";
  }
  Nodes nodes(1);
  // From where the node is, the path leads to nothing.
  const auto run =
      run_program({"/bin/sh", "-c",
                   "cd " + (folder / "") + " && exec " + kBin + "/leeway run plan.toml --out run " +
                       "--nodes " + nodes.text()});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_THAT(run.err, Contains("sending the data to " + nodes[0].name()));
  CHECK(read_json(folder / "run/result.json")["samples_trained"] == 800);
}

TEST_CASE("a run goes on when a node with workers dies, and trains every sample once") {
  TemporaryFolder folder;
  Nodes nodes(3);
  Process program(slow_run(nodes, folder / "run"));
  REQUIRE(gets_going(folder / "run"));
  nodes[2].process().signal(SIGKILL);
  check_ends(program, 0);
  CHECK_THAT(program.err(), Contains("node " + nodes[2].name() + " is gone") &&
                                Contains("worker 2 ended and was evicted"));
  check_trained_once(folder / "run", 3, 10000);
}

TEST_CASE("workers of a node that stood still come back, and every sample is trained once") {
  TemporaryFolder folder;
  Nodes nodes(3);
  Process program(slow_run(nodes, folder / "run"));
  REQUIRE(gets_going(folder / "run"));
  nodes[2].process().signal(SIGSTOP);
  CHECK(comes_true([&] { return program.err().find("evicted") != std::string::npos; }));
  nodes[2].process().signal(SIGCONT);
  CHECK(comes_true([&] { return program.err().find("heard again") != std::string::npos; }));
  check_ends(program, 0);
  check_trained_once(folder / "run", 3, 10000);
  CHECK(nodes.all_free());
}

TEST_CASE("Ctrl-C at a node lets its workers leave, and another one can join for them") {
  TemporaryFolder folder;
  Nodes nodes(3);
  auto arguments = slow_run(nodes, folder / "run");
  Listener program(arguments);
  REQUIRE(gets_going(folder / "run"));
  nodes[2].process().signal(SIGINT);
  check_ends(nodes[2].process(), 0, seconds(12));
  CHECK_THAT(nodes[2].process().err(), Contains("the workers here have left it"));
  // A node with a shard stays.
  nodes[0].process().signal(SIGINT);
  CHECK(nodes[0].says("to end now would lose the job"));
  Listener joined({kBin + "/leeway", "join", program.name(), "--listen", "127.0.0.1:0"});
  CHECK(program.says("worker 2 goes on at node " + joined.name()));
  const auto late = run_program({kBin + "/leeway", "join", program.name()});
  CHECK(late.code == 2);
  CHECK_THAT(late.err, Contains("has all its 3 workers"));
  check_ends(program.process(), 0);
  check_ends(joined.process(), 0, seconds(12));
  check_ends(nodes[0].process(), 0, seconds(12));  // with the job
  check_trained_once(folder / "run", 3, 10000);
}

TEST_CASE("a worker that was placed later comes with the node that joins") {
  TemporaryFolder folder;
  Nodes nodes(2);
  Listener program(slow_run(nodes, folder / "run") +
                   std::vector<std::string>{"--place", "worker2=later"});
  REQUIRE(gets_going(folder / "run"));
  Listener joined({kBin + "/leeway", "join", program.name(), "--listen", "127.0.0.1:0"});
  CHECK(program.says("worker 2 goes on at node " + joined.name()));
  check_ends(program.process(), 0);
  check_ends(joined.process(), 0, seconds(12));
  check_trained_once(folder / "run", 3, 10000);
}

TEST_CASE("a run whose shard's node dies fails, names it, and leaves the other nodes free") {
  TemporaryFolder folder;
  Nodes nodes(2);
  Process program(slow_run(nodes, folder / "run", kEndless));
  REQUIRE(gets_going(folder / "run"));
  const std::string name = nodes[0].name();
  nodes[0].process().signal(SIGKILL);
  check_ends(program, 1);
  CHECK_THAT(program.err(), Contains("shard 0") && Contains(name));
  CHECK(nodes[1].says("free"));
}

TEST_CASE("nodes are free when their program dies, and when it is interrupted") {
  TemporaryFolder folder;
  Nodes nodes(2);
  {
    Process program(slow_run(nodes, folder / "killed", kEndless));
    REQUIRE(gets_going(folder / "killed"));
    program.signal(SIGKILL);
    CHECK(nodes.all_free());
    CHECK_THAT(nodes[0].process().err(), Contains("the program is gone"));
  }
  Process program(slow_run(nodes, folder / "interrupted", kEndless));
  REQUIRE(gets_going(folder / "interrupted"));
  program.signal(SIGINT);
  check_ends(program, 130);
  CHECK(nodes.all_free());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].process().signal(SIGTERM);
    check_ends(nodes[i].process(), 0, seconds(12));
  }
}

TEST_CASE("status shows actors, clocks and links, whoever is asked") {
  TemporaryFolder folder;
  Nodes nodes(2);
  CHECK_THAT(run_program({kBin + "/leeway", "status", nodes[0].name()}).out, Contains("free"));
  Listener program(slow_run(nodes, folder / "run", kEndless));
  REQUIRE(gets_going(folder / "run"));
  for (const auto& name : {nodes[1].name(), program.name()}) {
    const auto status = run_program({kBin + "/leeway", "status", name, "--json"});
    INFO(status.err);
    REQUIRE(status.code == 0);
    const auto json = nlohmann::json::parse(status.out);
    CHECK(json["job"] == "linear-regression");
    REQUIRE(json["nodes"].size() == 3);
    CHECK(json["nodes"][0]["actors"] == nlohmann::json({"scheduler", "monitor"}));
    CHECK(json["nodes"][1]["actors"] == nlohmann::json({"shard 0", "worker 0", "worker 2"}));
    CHECK(json["workers"].size() == 3);
    CHECK(json["workers"][0]["clock"] > 0);
    CHECK(json["links"].size() == 6);
    CHECK(json["links"][0]["state"] == "up");
  }
  CHECK_THAT(run_program({kBin + "/leeway", "status", program.name()}).out,
             Contains("shard 0, worker 0, worker 2"));
  program.process().signal(SIGINT);
  check_ends(program.process(), 130);
  CHECK_THAT(run_program({kBin + "/leeway", "status", "127.0.0.1:1"}).err, Contains("127.0.0.1:1"));
}

TEST_CASE("with certificates of one authority nodes talk over TLS, and without one they do not") {
  TemporaryFolder folder;
  for (const char* keys : {"ours", "theirs"})
    REQUIRE(run_program({kBin + "/leeway", "cert", folder / keys, "--node", "127.0.0.1"}).code ==
            0);
  Nodes nodes(0);
  for (int i = 0; i < 2; ++i)
    nodes.add(
        {kBin + "/leeway", "node", "--listen", "127.0.0.1:0", "--tls", folder / "ours/127.0.0.1"});
  const auto run_with = [&](const std::vector<std::string>& flags) {
    return run_program(
        std::vector{kBin + "/linear-regression", "--no-out"s, "--nodes"s, nodes.text()} + flags);
  };
  for (const auto& flags : {std::vector<std::string>{},
                            std::vector<std::string>{"--tls", folder / "theirs/127.0.0.1"}}) {
    const auto stranger = run_with(flags);
    CHECK(stranger.code == 2);
    CHECK_THAT(stranger.err, Contains("2 of 2 nodes cannot take part"));
  }
  const auto run = run_with({"--tls", folder / "ours/127.0.0.1"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(nodes.all_free());
}

TEST_CASE("leeway up starts nodes, tells how to use them, and ends them") {
  Process up({kBin + "/leeway", "up", "2"});
  REQUIRE(comes_true([&] { return up.out().find("Ctrl-C") != std::string::npos; }));
  const std::string text = up.out();
  const auto begin = text.find("--nodes ") + 8;
  const std::string nodes = text.substr(begin, text.find('\n', begin) - begin);
  const auto run =
      run_program({kBin + "/linear-regression", "--nodes", nodes, "--no-out", "--quiet"});
  INFO(run.err);
  CHECK(run.code == 0);
  up.signal(SIGINT);
  check_ends(up, 0, seconds(15));
  CHECK_THAT(up.err(), Contains("node 1 has ended") && Contains("node 2 has ended"));
}

}  // namespace leeway::test
