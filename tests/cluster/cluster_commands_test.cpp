// The commands of `leeway` for clusters: their output and their errors.
#include <filesystem>
#include <utility>

#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

std::vector<bool> answering(const nlohmann::json& status) {
  std::vector<bool> answers;
  if (status.is_object())
    for (const auto& node : status["nodes"]) answers.push_back(node["answers"]);
  return answers;
}

/// Errors and JSON of `leeway status`, once exactly these nodes answer. On a loaded machine a node
/// may miss the limit.
std::pair<std::string, nlohmann::json> status_of(const std::string& name,
                                                 const std::vector<bool>& answers) {
  std::pair<std::string, nlohmann::json> printed;
  comes_true([&] {
    const auto status = run_program({kBin + "/leeway", "status", name, "--json"});
    printed = {status.err, nlohmann::json::parse(status.out, nullptr, false)};
    return answering(printed.second) == answers;
  });
  return printed;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // "PID (NAME) STATE PARENT ..."
    const std::string text = read_text(entry.path().string() + "/stat");
    const auto end = text.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream rest(text.substr(end + 1));
    std::string state;
    pid_t its_parent = 0;
    rest >> state >> its_parent;
    if (its_parent == parent) children.push_back(std::stoi(name));
  }
  return children;
}

}  // namespace

TEST_CASE("every node's status shows actors, clocks and links") {
  TemporaryFolder folder;
  Nodes nodes(2);
  CHECK_THAT(run_program({kBin + "/leeway", "status", nodes[0].name()}).out, Contains("free"));
  Listener program(slow_run(nodes, folder / "run"));
  REQUIRE(gets_going(folder / "run"));
  for (const auto& name : {nodes[1].name(), program.name()}) {
    const auto json = status_of(name, {true, true, true}).second;
    INFO(json);
    CHECK(json["job"] == "linear-regression");
    REQUIRE(json["nodes"].size() == 3);
    CHECK(json["nodes"][0]["actors"] == nlohmann::json({"scheduler", "monitor"}));
    CHECK(json["nodes"][1]["actors"] == nlohmann::json({"shard 0", "worker 0", "worker 2"}));
    CHECK(json["workers"].size() == 3);
    CHECK(json["workers"][0]["clock"] > 0);
    CHECK(json["links"].size() == 6);
    const auto& progress = json["progress"];
    CHECK(json["seconds"] > 0);
    CHECK(progress["samples"] > 2000);
    CHECK(progress["epoch"].get<double>() * 10000 == Approx(progress["samples"]));
    CHECK(progress["samples_per_second"] > 0);
    CHECK(progress["train_loss"] > 0);
    CHECK(progress["test_accuracy"].is_null());
    CHECK(progress["staleness_bound"] == 2);
    CHECK(progress["workers"] == 3);
    CHECK(json["links"][0]["state"] == "up");
  }
  CHECK_THAT(run_program({kBin + "/leeway", "status", program.name()}).out,
             Contains("shard 0, worker 0, worker 2"));
  // The error names a stopped node, and the table shows the others.
  nodes[1].process().signal(SIGSTOP);
  const auto [error, json] = status_of(program.name(), {true, true, false});
  nodes[1].process().signal(SIGCONT);
  CHECK(answering(json) == std::vector{true, true, false});
  CHECK_THAT(error, Contains("leeway: " + nodes[1].name() + ": ") && Contains("stopped?"));
  program.process().signal(SIGINT);
  check_ends(program.process(), 130);
}

TEST_CASE("messages of all nodes are kept, in the program's time") {
  TemporaryFolder folder;
  Nodes nodes(2);
  const auto ran = run_program({kBin + "/linear-regression", "--nodes", nodes.text(),
                                "--trace-messages", "--epochs", "1", "--out", folder / "run"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  const auto count = [&](const std::string& from, const std::string& to, const std::string& kind) {
    const auto printed = run_program(
        {kBin + "/leeway", "messages", folder / "run", "--from", from, "--to", to, "--kind", kind});
    CHECK(printed.code == 0);
    return std::count(printed.out.begin(), printed.out.end(), '\n');
  };
  for (const std::string worker : {"worker0", "worker1"}) {
    CHECK(count(worker, "shard0", "push") > 10);
    CHECK(count(worker, "shard0", "push") == count("shard0", worker, "pushed"));
  }
}

TEST_CASE("wrong addresses are refused with a remedy") {
  const auto run_leeway = [](std::vector<std::string> words) {
    words.insert(words.begin(), kBin + "/leeway");
    return run_program(words);
  };
  struct Wrong {
    std::vector<std::string> words;
    int code;
    std::string text;
  };
  const std::vector<Wrong> all = {
      {{"status", "nonsense"}, 2, "\"nonsense\" is not a node; give HOST:PORT"},
      {{"join", "nonsense"}, 2, "\"nonsense\" is not a node; give HOST:PORT"},
      {{"status", "127.0.0.1:1"},
       1,
       "127.0.0.1:1: no process listens there; give the address of a node"},
      {{"join", "127.0.0.1:1"},
       2,
       "no process listens there; give the address that the program prints"},
      {{"node", "--listen", "127.0.0.1:99999"}, 2, "give 65535 at most"},
      {{"node", "--listen", "no-such-host.invalid:1"},
       2,
       "give an address or a name of this machine"},
      {{"node"}, 2, "--listen is required"}};
  for (const auto& wrong : all) {
    const auto ran = run_leeway(wrong.words);
    INFO(join(wrong.words, " ") << ": " << ran.err);
    CHECK(ran.code == wrong.code);
    CHECK_THAT(ran.err, Contains(wrong.text));
    CHECK_THAT(ran.err, !Contains("listening on"s) || Contains("127.0.0.1:1: "));
  }
  for (const std::string word : {"node", "up", "join", "status"}) {
    const auto help = run_leeway({word, "--help"});
    CHECK(help.code == 0);
    CHECK_THAT(help.out, Contains("\nExit codes: 0 "));
    CHECK_THAT(help.out, !Contains("=127.0.0.1:0 REQUIRED"));
  }
  CHECK_THAT(run_program({kBin + "/linear-regression", "--help"}).out,
             Contains("linear-regression node --listen HOST:PORT") &&
                 Contains("linear-regression join PROGRAM:PORT") && Contains("\nExit codes: 0 "));
}

TEST_CASE("leeway up starts nodes, prints how to use them, and ends them") {
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
  check_ends(up, 0);
  CHECK_THAT(up.err(), Contains("node 1 (127.0.0.1:") && Contains("node 2 (127.0.0.1:") &&
                           Contains(") has ended\n"));
}

TEST_CASE("with TLS, the printed commands work as they are") {
  TemporaryFolder folder;
  REQUIRE(run_program({kBin + "/leeway", "cert", folder / "keys", "--node", "127.0.0.1"}).code ==
          0);
  const std::string keys = folder / "keys/127.0.0.1";
  Process up({kBin + "/leeway", "up", "1", "--tls", keys});
  REQUIRE(comes_true([&] { return up.out().find("Ctrl-C") != std::string::npos; }));
  const auto words_after = [](const std::string& text, const std::string& mark, char end) {
    const auto begin = text.find(mark);
    REQUIRE(begin != std::string::npos);
    std::istringstream line(text.substr(begin, text.find(end, begin) - begin));
    return std::vector<std::string>(std::istream_iterator<std::string>(line), {});
  };
  const auto flags = words_after(up.out(), "--nodes ", '\n');
  Process program(std::vector{kBin + "/linear-regression", "--no-out"s, "--workers"s, "2"s,
                              "--place"s, "worker1=later"s, "--epochs"s, kEndless} +
                  flags);
  REQUIRE(comes_true([&] { return program.err().find("can join with") != std::string::npos; }));
  auto join = words_after(program.err(), "leeway join", '`');
  join[0] = kBin + "/leeway";
  Listener joined(join);
  CHECK(joined.prints("worker 1"));
  program.signal(SIGINT);
  check_ends(program, 130);
  check_ends(joined.process(), 0);
  const auto missing =
      run_program({kBin + "/linear-regression", "--nodes", "127.0.0.1:1", "--tls", keys});
  CHECK_THAT(missing.err, Contains("`leeway node --listen 127.0.0.1:1 --tls " + keys + "`"));
  up.signal(SIGINT);
  check_ends(up, 0);
}

TEST_CASE("leeway up names a killed node, and the others continue") {
  Process up({kBin + "/leeway", "up", "2"});
  REQUIRE(comes_true([&] { return up.out().find("Ctrl-C") != std::string::npos; }));
  const auto nodes = children_of(up.pid());
  REQUIRE(nodes.size() == 2);
  kill(nodes[0], SIGKILL);
  const auto find = [&](const std::string& text) {
    return up.err().find(text) != std::string::npos;
  };
  CHECK(comes_true([&] { return find(") was killed by signal 9 (Killed)\n"); }));
  CHECK(comes_true([&] { return find("the other nodes continue: --nodes 127.0.0.1:"); }));
  kill(nodes[1], SIGKILL);
  CHECK(comes_true([&] { return find("all nodes have ended"); }));
  check_ends(up, 1);
}

TEST_CASE("leeway up --restart starts a killed node again, which takes its workers again") {
  TemporaryFolder folder;
  Process up({kBin + "/leeway", "up", "2", "--restart"});
  REQUIRE(comes_true([&] { return up.out().find("Ctrl-C") != std::string::npos; }));
  const auto after = up.out().find("--nodes ") + 8;
  const std::string nodes = up.out().substr(after, up.out().find('\n', after) - after);
  const std::string second = nodes.substr(nodes.find(',') + 1);
  auto arguments = slow_run(nodes, folder / "run");
  arguments.insert(arguments.end(), {"--place", "shards=1,workers=1+2"});
  Process program(arguments);
  REQUIRE(gets_going(folder / "run"));
  const auto processes = children_of(up.pid());
  REQUIRE(processes.size() == 2);
  kill(processes[1], SIGKILL);
  const auto prints = [](Process& process, const std::string& text) {
    return comes_true([&] { return process.err().find(text) != std::string::npos; });
  };
  CHECK(prints(up, ") was killed by signal 9 (Killed)\n"));
  CHECK(prints(program, "worker 1 continues at node " + second));
  program.signal(SIGINT);
  check_ends(program, 130);
  up.signal(SIGINT);
  check_ends(up, 0);
}

}  // namespace leeway::test
