// Runs on clusters of real processes: actions of users, and faults of processes.
#include "tests/cluster/cluster_processes.hpp"
#include "tests/transport/tcp_proxy.hpp"

namespace leeway::test {
namespace {

constexpr std::int64_t kSamples = 10000;  // training samples of linear-regression

}  // namespace

TEST_CASE("consecutive runs on three nodes give the weights of a run in one process") {
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

TEST_CASE("connections that are cut again and again do not change the result") {
  TemporaryFolder folder;
  Nodes nodes(3);
  std::vector<std::unique_ptr<TcpProxy>> proxies;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string name = nodes[i].name();
    const int port = std::stoi(name.substr(name.rfind(':') + 1));
    proxies.push_back(std::make_unique<TcpProxy>(static_cast<std::uint16_t>(port)));
    names.push_back(concat("127.0.0.1:", proxies.back()->port()));
  }
  const std::vector<std::string> flags = {"--staleness", "bsp", "--workers", "3",
                                          "--batch",     "16",  "--epochs",  "8"};
  const auto here = run_program(
      std::vector{kBin + "/linear-regression", "--out"s, folder / "here", "--slow"s, "none"s} +
      flags);
  REQUIRE(here.code == 0);
  Process program(std::vector{kBin + "/linear-regression", "--out"s, folder / "there", "--nodes"s,
                              join(names, ","), "--place"s, "shards=1,workers=1+2+3"s, "--slow"s,
                              "all:pauses(4ms/1)"s} +
                  flags);
  REQUIRE(gets_going(folder / "there"));
  for (int times = 0; times < 12; ++times) {
    proxies[static_cast<std::size_t>(times % 3)]->cut();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  check_ends(program, 0);
  CHECK_THAT(program.err(), !Contains("evicted"));
  CHECK(read_text(folder / "there/weights.safetensors") ==
        read_text(folder / "here/weights.safetensors"));
  CHECK(nodes.all_free());
}

TEST_CASE("the refusal of a second program names the first, and an error names a missing node") {
  TemporaryFolder folder;
  Nodes nodes(2);
  Process first(slow_run(nodes, folder / "first"));
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

TEST_CASE("data that a node cannot find is sent to it") {
  TemporaryFolder folder;
  {
    std::ofstream csv(folder / "data.csv");
    csv << "x,kind,label\n";
    for (int i = 0; i < 500; ++i)
      csv << (i % 9 ? std::to_string(i % 7) : "?") << ',' << (i % 5 ? "red" : "blue") << ','
          << (i % 7 > 3 ? "high" : "low") << '\n';
    std::ofstream plan(folder / "plan.toml");
    plan << "name = \"sent\"\nworkers = 2\nshards = 1\nbatch = 10\nstop.epochs = 2\n"
            "model = [{ linear.outputs = 2 }]\ndata.csv.train = \"data.csv\"\n"
            "data.csv.missing = \"mean\"\n";
  }
  Nodes nodes(1);
  // The path does not exist in the node's folder.
  const auto run =
      run_program({"/bin/sh", "-c",
                   "cd " + (folder / "") + " && exec " + kBin + "/leeway run plan.toml --out run " +
                       "--nodes " + nodes.text()});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_THAT(run.err, Contains("sending the data to " + nodes[0].name()));
  CHECK(read_json(folder / "run/result.json")["samples_trained"] == 800);
}

TEST_CASE("when a node with workers dies, the run continues and trains every sample once") {
  TemporaryFolder folder;
  Nodes nodes(3);
  Process program(slow_run(nodes, folder / "run", "5"));
  REQUIRE(gets_going(folder / "run"));
  nodes[2].process().signal(SIGKILL);
  check_ends(program, 0);
  CHECK_THAT(program.err(), Contains("node " + nodes[2].name() + " is gone") &&
                                Contains("worker 2 ended and was evicted"));
  check_trained_once(folder / "run", kSamples, 5);
}

TEST_CASE("a program that is stopped for seconds continues, and every sample is trained once") {
  TemporaryFolder folder;
  Nodes nodes(2);
  Process program(slow_run(nodes, folder / "run", kEndless));
  REQUIRE(gets_going(folder / "run"));
  program.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  program.signal(SIGCONT);
  interrupt_later(program, folder / "run", kSamples);
  CHECK_THAT(program.err(), !Contains("evicted"));
  check_trained_once(folder / "run", kSamples);
  CHECK(nodes.all_free());
}

TEST_CASE("workers of a stopped node return when it continues, and every sample is trained once") {
  TemporaryFolder folder;
  const std::string silence = "2s";
  Nodes nodes(3, silence);
  Process program(slow_run(nodes, folder / "run", kEndless, silence));
  REQUIRE(gets_going(folder / "run"));
  nodes[2].process().signal(SIGSTOP);
  CHECK(comes_true([&] { return program.err().find("evicted") != std::string::npos; }));
  nodes[2].process().signal(SIGCONT);
  CHECK(comes_true([&] { return program.err().find("heard again") != std::string::npos; }));
  CHECK(comes_true([&] { return program.err().find("worker 2 is back") != std::string::npos; }));
  interrupt_later(program, folder / "run", kSamples);
  CHECK_THAT(program.out(),
             Contains("came back after: no sign of life of node " + nodes[2].name()));
  check_trained_once(folder / "run", kSamples);
  CHECK(nodes.all_free());
}

TEST_CASE(
    "a node that joins at once replaces one that was killed, or that is silent for too long") {
  const bool killed = GENERATE(true, false);
  TemporaryFolder folder;
  Nodes nodes(3);
  auto arguments = slow_run(nodes, folder / "run", kEndless, killed ? kLongSilence : "2s");
  // A node that is only slow must not end the run.
  arguments.insert(arguments.end(), {"--place", "shards=0"});
  Listener program(arguments);
  REQUIRE(gets_going(folder / "run"));
  nodes[2].process().signal(killed ? SIGKILL : SIGSTOP);  // or as if it had lost power
  Listener joined({kBin + "/leeway", "join", program.name(), "--listen", "127.0.0.1:0"});
  CHECK(program.prints("worker 2 continues at node " + joined.name()));
  if (!killed) nodes[2].process().signal(SIGCONT);
  interrupt_later(program.process(), folder / "run", kSamples);
  check_ends(joined.process(), 0);
  if (!killed) CHECK(nodes[2].prints("free"));
  check_trained_once(folder / "run", kSamples);
}

TEST_CASE("Ctrl-C at a node lets its workers leave, and another node can take them over") {
  TemporaryFolder folder;
  Nodes nodes(3);
  Listener program(slow_run(nodes, folder / "run"));
  REQUIRE(gets_going(folder / "run"));
  nodes[2].process().signal(SIGINT);
  check_ends(nodes[2].process(), 0);
  CHECK_THAT(nodes[2].process().err(), Contains("its actors here have left it"));
  // A node with a shard stays.
  nodes[0].process().signal(SIGINT);
  CHECK(nodes[0].prints("ending now would lose the job"));
  Listener joined({kBin + "/leeway", "join", program.name(), "--listen", "127.0.0.1:0"});
  CHECK(program.prints("worker 2 continues at node " + joined.name()));
  const auto late = run_program({kBin + "/leeway", "join", program.name(), "--wait", "0s"});
  CHECK(late.code == 2);
  CHECK_THAT(late.err, Contains("has all its 3 workers"));
  interrupt_later(program.process(), folder / "run", kSamples);
  check_ends(joined.process(), 0);
  check_ends(nodes[0].process(), 0);  // with the job
  check_trained_once(folder / "run", kSamples);
}

TEST_CASE("a worker that was placed later starts on the node that joins") {
  TemporaryFolder folder;
  Nodes nodes(2);
  Listener program(slow_run(nodes, folder / "run") +
                   std::vector<std::string>{"--place", "worker2=later"});
  REQUIRE(gets_going(folder / "run"));
  Listener joined({kBin + "/leeway", "join", program.name(), "--listen", "127.0.0.1:0"});
  CHECK(program.prints("worker 2 continues at node " + joined.name()));
  CHECK(joined.prints("worker 2 of the job of linear-regression"));
  interrupt_later(program.process(), folder / "run", kSamples);
  check_ends(joined.process(), 0);
  check_trained_once(folder / "run", kSamples);
}

TEST_CASE("when a shard's node dies or stops, the run fails with its name, and all are free") {
  const bool killed = GENERATE(true, false);
  TemporaryFolder folder;
  const std::string silence = killed ? kLongSilence : "2s";
  Nodes nodes(2, silence);
  Process program(slow_run(nodes, folder / "run", kEndless, silence));
  REQUIRE(gets_going(folder / "run"));
  const std::string name = nodes[0].name();
  nodes[0].process().signal(killed ? SIGKILL : SIGSTOP);
  check_ends(program, 1);
  CHECK_THAT(program.err(), Contains("shard 0") && Contains(name));
  CHECK(nodes[1].prints("free"));
  if (killed) return;
  nodes[0].process().signal(SIGCONT);
  CHECK(nodes[0].prints("free"));
}

TEST_CASE("nodes are free when their program dies, and when it is interrupted") {
  TemporaryFolder folder;
  Nodes nodes(2);
  {
    Process program(slow_run(nodes, folder / "killed"));
    REQUIRE(gets_going(folder / "killed"));
    program.signal(SIGKILL);
    program.wait();
  }
  // The next program may start before that.
  Process program(slow_run(nodes, folder / "interrupted"));
  REQUIRE(gets_going(folder / "interrupted"));
  program.signal(SIGINT);
  check_ends(program, 130);
  CHECK_THAT(program.out(),
             Contains(concat("Resume it with: ", kBin, "/linear-regression --resume ",
                             folder / "interrupted", " --nodes ", nodes.text(), " --silence ",
                             kLongSilence, '\n')));
  CHECK(nodes.all_free());
  CHECK_THAT(nodes[0].process().err(),
             Contains("the program is gone: its process has ended; free"));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].process().signal(SIGTERM);
    check_ends(nodes[i].process(), 0);
  }
}

TEST_CASE("over TLS, only nodes with certificates of one authority connect") {
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
    const auto unknown = run_with(flags);
    CHECK(unknown.code == 2);
    CHECK_THAT(unknown.err, Contains("2 of 2 nodes cannot take part"));
  }
  const auto run = run_with({"--tls", folder / "ours/127.0.0.1"});
  INFO(run.err);
  CHECK(run.code == 0);
  // The program listens on all addresses, and prints the one that these nodes can reach.
  CHECK_THAT(run.err, Contains("listening on 127.0.0.1:"));
  CHECK(nodes.all_free());
}

}  // namespace leeway::test
