// `leeway launch`: loops of the user's in real processes, which fail, are killed and start again.
#include <csignal>
#include <sstream>

#include "checkpoint/store.hpp"
#include "core/files.hpp"
#include "kv/create.hpp"
#include "models/safetensors.hpp"
#include "tests/cluster/cluster_processes.hpp"

namespace leeway::test {
namespace {

const std::string kWorkerProgram = LEEWAY_WORKER_PROGRAM;
const std::string kServerProgram = LEEWAY_SERVER_PROGRAM;
const std::string kExamples = LEEWAY_EXAMPLES;
const std::string kSanitized = LEEWAY_SANITIZED;

std::vector<std::string> launched(const std::string& out, std::vector<std::string> flags,
                                  const std::vector<std::string>& words) {
  return std::vector{kBin + "/leeway", "launch"s, "--out"s, out} + flags +
         std::vector{kWorkerProgram} + words;
}

float weight(const std::string& folder, const std::string& key) {
  const auto file = read_safetensors(folder + "/weights.safetensors");
  REQUIRE(file);
  for (const auto& tensor : file->tensors)
    if (tensor.name == key) return tensor.data.as_floats()[0];
  FAIL("no weight " << key);
  return 0;
}

bool has_checkpoint(const std::string& folder) {
  const auto numbers = checkpoint::Store(disk(), folder + "/checkpoints").numbers();
  return numbers && !numbers->empty();
}

}  // namespace

TEST_CASE("launched workers push known values, and their sum arrives under each policy") {
  const std::string type =
      GENERATE(as<std::string>(), "dist_sync", "dist_async", "dist_ssp(2)", "dist_adaptive(1,4)");
  const TemporaryFolder out;
  const std::string transport = type == "dist_sync" ? "tcp" : "auto";
  Process run(launched(out / "run", {"--workers", "3", "--shards", "2", "--transport", transport},
                       {type, "sum"}));
  check_ends(run, 0);
  for (const char* key : {"large", "7"}) CHECK(weight(out / "run", key) == 5 * (1 + 2 + 3));
  CHECK_THAT(run.out(), Contains("worker 2: done"));
}

TEST_CASE("the keys of launched workers may have any order, and worker 0 sets the optimizer") {
  const TemporaryFolder out;
  Process run(launched(out / "run", {"--workers", "2", "--port", "0"}, {"dist_sync", "apart"}));
  check_ends(run, 0);
  CHECK(weight(out / "run", "a") == 0);
  CHECK(weight(out / "run", "b") == -0.5f);
}

TEST_CASE("the output of launched workers is printed line by line, also a flood of it") {
  const TemporaryFolder out;
  Process run(launched(out / "run", {"--workers", "2"}, {"dist_sync", "floods"}));
  check_ends(run, 0);
  for (const char* line : {"worker 0: line 0\n", "worker 1: line 199999\n", "worker 1: 50%\n"})
    CHECK_THAT(run.out(), Contains(line));
}

TEST_CASE("the only worker of a launch is killed, and continues when it is restarted") {
  const TemporaryFolder out;
  Listener run(
      launched(out / "run", {"--restart", "--workers", "1"}, {"dist_ssp(3)", "count", "60"}));
  REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 600; }));
  REQUIRE(kill(run.process().children().at(0), SIGKILL) == 0);
  REQUIRE(run.prints("is back"));
  check_ends(run.process(), 0);
  CHECK(weight(out / "run", "count") == 60 * 600);
}

TEST_CASE("a killed worker is evicted, the others continue, and each sample is counted once") {
  const bool restarts = GENERATE(false, true);
  const TemporaryFolder out;
  Listener run(launched(
      out / "run",
      restarts ? std::vector{"--restart"s, "--workers"s, "3"s} : std::vector{"--workers"s, "3"s},
      {"dist_ssp(3)", "count", "120"}));
  REQUIRE(run.prints("node 3 is"));
  REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 600; }));
  const auto workers = run.process().children();
  REQUIRE(workers.size() == 3);
  REQUIRE(kill(workers[1], SIGKILL) == 0);
  REQUIRE(run.prints("was killed by signal 9"));
  if (restarts) REQUIRE(run.prints("is back"));
  check_ends(run.process(), 0);
  CHECK(weight(out / "run", "count") == 120 * 600);
}

TEST_CASE("a restarted worker pulls the current weights, and its iterations continue") {
  const TemporaryFolder out;
  Listener run(launched(out / "run", {"--restart", "--workers", "2"}, {"dist_ssp(3)", "goes on"}));
  const auto prints = [&](const std::string& text) {
    return comes_true([&] { return run.process().out().find(text) != std::string::npos; });
  };
  REQUIRE(prints("worker 1: begins at 0 with"));
  REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 60; }));
  REQUIRE(kill(run.process().children().at(1), SIGKILL) == 0);
  REQUIRE(run.prints("is back"));
  const auto asked = run_program({kBin + "/leeway", "status", run.name()});
  CHECK_THAT(asked.out, Contains("gone; node 3 is at its address"));
  check_ends(run.process(), 0);
  const std::string text = run.process().out(), begins = "worker 1: begins at ";
  const auto second = text.find(begins, text.find(begins) + 1);
  REQUIRE(second != std::string::npos);
  std::istringstream words(text.substr(second + begins.size()));
  std::int64_t iteration = 0;
  std::string with;
  float weight = 0;
  words >> iteration >> with >> weight;
  CHECK(iteration > 10);
  CHECK(weight >= static_cast<float>(iteration - 4));  // worker 0 has pushed meanwhile
}

TEST_CASE("a launch with --trace is explained by blame, and exported") {
  const TemporaryFolder out;
  Process run(launched(out / "run", {"--workers", "2", "--slow", "1:3x", "--trace"},
                       {"dist_sync", "count", "4"}));
  check_ends(run, 0);
  const auto blame = run_program({kBin + "/leeway", "blame", out / "run"});
  CHECK(blame.code == 0);
  CHECK_THAT(blame.out, Contains("worker 0") && Contains("worker 1"));
  const auto trace = run_program({kBin + "/leeway", "trace", out / "run"});
  CHECK(trace.code == 0);
  const auto what_if =
      run_program({kBin + "/leeway", "what-if", out / "run", "--without-straggler", "worker1"});
  CHECK(what_if.code == 2);
  CHECK_THAT(what_if.err, Contains("no model that could be simulated"));
}

TEST_CASE("a launch whose launcher is killed is resumed, and each sample is counted once") {
  const TemporaryFolder out;
  {
    Listener run(launched(out / "run", {"--workers", "3", "--checkpoint-every", "30it"},
                          {"dist_ssp(3)", "count", "60"}));
    REQUIRE(comes_true([&] { return has_checkpoint(out / "run"); }));
    run.process().signal(SIGKILL);
    run.process().wait();
  }
  const std::vector<std::string> resume{kBin + "/leeway", "launch", "--resume", out / "run"};
  const auto other = run_program(resume + std::vector{kWorkerProgram, "dist_sync"s, "sum"s});
  CHECK(other.code == 2);
  CHECK_THAT(other.err,
             Contains("--resume: the program has not initialised key \"count\" of the run"));
  const auto as_scenario = run_program({kBin + "/leeway", "resume", out / "run"});
  CHECK(as_scenario.code == 2);
  CHECK_THAT(as_scenario.err, Contains("resume it with `leeway launch --resume"));

  Process resumed(resume +
                  std::vector{"--epochs"s, "70"s, kWorkerProgram, "dist_async"s, "count"s});
  check_ends(resumed, 0);
  CHECK(weight(out / "run", "count") == 70 * 600);
  CHECK_THAT(resumed.err(), Contains("keeps its own type; flags change"));
}

TEST_CASE("an interrupted launch says how to resume it") {
  const TemporaryFolder out;
  Listener run(launched(out / "run", {"--workers", "2", "--silence", "5s"},
                        {"dist_ssp(3)", "count", "10000"}));
  REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 600; }));
  run.process().signal(SIGINT);
  check_ends(run.process(), 130);
  CHECK_THAT(run.process().out(),
             Contains(concat("Resume it with: leeway launch --resume ", out / "run",
                             " --silence 5s ", kWorkerProgram, " 'dist_ssp(3)' count 10000")));
}

TEST_CASE("a server program updates keys with its functions, on its nodes too") {
  const TemporaryFolder out;
  const auto server = [&](const std::string& name, const std::vector<std::string>& flags) {
    return std::vector{kServerProgram, "--out"s, out / name, "--workers"s, "3"s} + flags +
           std::vector{kWorkerProgram, "dist_async"s, "updates"s};
  };
  Process run(server("alone", {}));
  check_ends(run, 0);
  CHECK(weight(out / "alone", "largest") == 3);
  CHECK(weight(out / "alone", "replaced") == 100);

  Listener node({kServerProgram, "node", "--listen", "127.0.0.1:0"});
  Process spread(server("spread", {"--nodes", node.name()}));
  check_ends(spread, 0);
  CHECK(weight(out / "spread", "largest") == 3);

  Process refused(launched(out / "refused", {"--workers", "1"}, {"dist_async", "updates"}));
  check_ends(refused, 2);
  CHECK_THAT(refused.err(), Contains("\"keep largest\" is not registered"));
}

TEST_CASE("launched workers wait for each other at barriers, also after one is killed") {
  const bool is_killed = GENERATE(false, true);
  const TemporaryFolder out;
  Listener run(launched(out / "run", {"--workers", "3"}, {"dist_ssp(3)", "phases"}));
  if (is_killed) {
    REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 10; }));
    REQUIRE(kill(run.process().children().at(2), SIGKILL) == 0);
  }
  check_ends(run.process(), 0);
  const float sum = weight(out / "run", "sum");
  CHECK((is_killed ? sum >= 200 && sum < 300 : sum == 300));
}

TEST_CASE("workers may be programs in C and in Python, with encoded pushes and pulls") {
  const TemporaryFolder out;
  const std::string python = kExamples + "/linear_by_hand.py";
  std::vector<std::vector<std::string>> programs = {{kBin + "/examples/linear_in_c"}};
  if (kSanitized.empty())
    programs.push_back({"python3", python});  // else it would need the runtime
  for (const auto& program : programs) {
    const std::string folder = out / program.front().substr(program.front().rfind('/') + 1);
    Process run(std::vector{kBin + "/leeway", "launch"s, "--out"s, folder, "--workers"s, "2"s,
                            "--compress"s, "push=int8,pull=bf16"s} +
                program);
    check_ends(run, 0);
    CHECK_THAT(run.out(), Contains("times fewer"));
    const auto file = read_safetensors(folder + "/weights.safetensors");
    REQUIRE(file);
    const float* const w = file->tensors.at(0).data.as_floats();
    CHECK(w[0] == Approx(3).margin(0.01));
    CHECK(w[1] == Approx(-2).margin(0.01));
    CHECK(w[2] == Approx(0.5).margin(0.01));
  }
}

TEST_CASE("shards of launched workers may be on other nodes") {
  Nodes nodes(2);
  const TemporaryFolder out;
  Process run(launched(
      out / "run", {"--workers", "2", "--shards", "2", "--replicas", "2", "--nodes", nodes.text()},
      {"dist_sync", "sum"}));
  check_ends(run, 0);
  CHECK(weight(out / "run", "large") == 5 * (1 + 2));
  CHECK(nodes.all_free());
}

TEST_CASE("a launch survives the loss of a node with a shard that has a standby") {
  Nodes nodes(2);
  const TemporaryFolder out;
  Listener run(launched(
      out / "run", {"--workers", "2", "--shards", "2", "--replicas", "2", "--nodes", nodes.text()},
      {"dist_ssp(3)", "count", "60"}));
  REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 600; }));
  nodes[0].process().signal(SIGKILL);
  check_ends(run.process(), 0);
  CHECK_THAT(run.process().err(), Contains("node " + nodes[0].name() + " is gone"));
  CHECK(weight(out / "run", "count") == 60 * 600);
}

TEST_CASE("a launch fails with the reason when a node with the only replica of a shard is lost") {
  Nodes nodes(2);
  const TemporaryFolder out;
  Listener run(launched(out / "run", {"--workers", "2", "--shards", "2", "--nodes", nodes.text()},
                        {"dist_ssp(3)", "count", "1000"}));
  REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 600; }));
  nodes[0].process().signal(SIGKILL);
  check_ends(run.process(), 1);
  CHECK_THAT(run.process().err(), Contains("its part of the weights is lost"));
}

TEST_CASE("the C++ examples train as launched workers") {
  const TemporaryFolder out;
  const auto launch = [&](const std::string& name) {
    Process run(std::vector{kBin + "/leeway", "launch"s, "--out"s, out / name, "--workers"s, "2"s,
                            kBin + "/examples/" + name});
    check_ends(run, 0);
    return run.out();
  };
  launch("linear_by_hand");
  CHECK(weight(out / "linear_by_hand", "w") == Approx(3).margin(0.01));
  const std::string text = launch("mlp_by_hand"), last = "accuracy of the last batches: ";
  REQUIRE(text.find(last) != std::string::npos);
  CHECK(std::stod(text.substr(text.find(last) + last.size())) > 0.75);
}

TEST_CASE("stragglers slow launched workers down, and the status names their nodes") {
  const TemporaryFolder out;
  Listener run(
      launched(out / "run", {"--workers", "2", "--slow", "1:20x"}, {"dist_ssp(3)", "count", "8"}));
  const auto asked = run_program({kBin + "/leeway", "status", run.name()});
  CHECK_THAT(asked.out, Contains("worker 1"));
  check_ends(run.process(), 0);
  CHECK(weight(out / "run", "count") == 8 * 600);
  const auto result = read_json(out / "run/result.json");
  CHECK(result.at("straggler_seconds").at(0).get<double>() > 0.1);
}

TEST_CASE("a worker that fails, exits or returns early leaves the run to the others") {
  const std::string mode = GENERATE(as<std::string>(), "throws", "exits", "calls exit", "returns");
  const TemporaryFolder out;
  Process run(launched(out / "run", {"--workers", "3"}, {"dist_sync", mode}));
  check_ends(run, 0);
  // 1, and 30 pushes of two workers; the worker that fails may lose its last one.
  const float pushed = weight(out / "run", "w") - 1 - 60;
  CHECK((pushed == 4 || (mode != "returns" && pushed == 3)));
}

TEST_CASE("what launched workers do wrong ends the launch with the reason") {
  const TemporaryFolder out;
  const auto fails = [&](const std::vector<std::string>& words, int code, const std::string& text,
                         const std::vector<std::string>& flags = {}) {
    Process run(launched(out / "run", std::vector{"--workers"s, "2"s} + flags, words));
    check_ends(run, code);
    CHECK_THAT(run.out() + run.err(), Contains(text));
  };
  fails({"dist_sync", "shapes"}, 1, "with the shape");
  fails({"dist_sync", "apart"}, 2, "set this one in the program", {"--optimizer", "assign"});
  fails({"dist_sink", "sum"}, 1, "store type \"dist_sink\": give local, dist_sync, dist_async,");
  fails({"dist_sync", "twice"}, 1, "it can have only one");
  fails({"dist_sync", "nothing"}, 1, "has no keys");
  fails({"local", "sum"}, 1, "One of type local takes no part in a launch");
  fails({"dist_sync", "sum"}, 2, "--simulate", {"--simulate"});
  const auto missing = run_program({kBin + "/leeway", "launch", "--restart", "./not-there"});
  CHECK(missing.code == 1);
  CHECK_THAT(missing.err, Contains("cannot be run: ./not-there: No such file"));
  const auto alone = run_program({kWorkerProgram, "dist_sync", "sum"});
  CHECK(alone.code == 1);
  CHECK_THAT(alone.out, Contains("start the program with `leeway launch"));
}

TEST_CASE("the help of launch has the defaults of the program, and only flags that stores have") {
  const auto help = run_program({kBin + "/leeway", "launch", "--help"});
  CHECK(help.code == 0);
  CHECK_THAT(help.out, Contains("Learning rate [as PROGRAM has it]") &&
                           Contains("hold the parameters [1]") && !Contains("1e+09") &&
                           !Contains("--predict-weights"));
}

TEST_CASE("Ctrl-C ends a launch whose workers are not ready, or train") {
  const TemporaryFolder out;
  SECTION("not ready") {
    Listener run(launched(out / "run", {"--workers", "2"}, {"dist_sync", "waits"}));
    REQUIRE(run.prints("waiting for worker 1 to pull"));
    run.process().signal(SIGINT);
    check_ends(run.process(), 130);
  }
  SECTION("in training") {
    Listener run(launched(out / "run", {"--workers", "2"}, {"dist_ssp(3)", "count", "10000"}));
    REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 600; }));
    run.process().signal(SIGINT);
    check_ends(run.process(), 130);
    CHECK_THAT(run.process().out(), Contains("worker 1: done"));
  }
}

TEST_CASE("workers end when their launcher is killed") {
  const TemporaryFolder out;
  Listener run(launched(out / "run", {"--workers", "2"}, {"dist_ssp(3)", "count", "10000"}));
  REQUIRE(comes_true([&] { return samples_so_far(out / "run") > 600; }));
  const auto workers = run.process().children();
  run.process().signal(SIGKILL);
  run.process().wait();
  for (const pid_t worker : workers) CHECK(comes_true([&] { return kill(worker, 0) != 0; }));
}

TEST_CASE("store types name the policies") {
  CHECK(std::holds_alternative<plan::Bsp>(*kv::policy_of("dist_sync")));
  CHECK(std::holds_alternative<plan::Asp>(*kv::policy_of("dist_async")));
  CHECK(std::get<plan::Ssp>(*kv::policy_of("dist_ssp(7)")).staleness == 7);
  CHECK(std::get<plan::Backup>(*kv::policy_of("dist_backup(2)")).spare == 2);
  CHECK(std::get<plan::Adaptive>(*kv::policy_of("dist_adaptive(1,8)")).high == 8);
  CHECK(std::get<plan::Quorum>(*kv::policy_of("dist_quorum(3,20ms)")) == plan::Quorum{3, 20});
  CHECK(std::holds_alternative<plan::Automatic>(*kv::policy_of("dist_auto")));
  for (const char* wrong :
       {"local_", "dist_", "dist_ssp", "dist_ssp(bsp)", "dist_backup()", "sync"})
    CHECK_FALSE(kv::policy_of(wrong));
}

}  // namespace leeway::test
