// The shipped programs as a user runs them: with real processes, data and signals.
#include <algorithm>
#include <catch2/catch.hpp>

#include "core/text.hpp"
#include "models/safetensors.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

const std::string kBin = LEEWAY_BIN;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Writes a text that is easy to learn.
void write_days(const std::string& file) {
  std::ofstream text(file);
  for (int day = 0; day < 4000; ++day)
    text << "The evening and the morning were day " << day << ".\n";
}

}  // namespace

TEST_CASE("linear-regression finds 3 and 2") {
  const TemporaryFolder folder;
  const auto ran = run_program({kBin + "/linear-regression", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "Found y = 3.0"));
  CHECK(read_json(folder / "run/result.json")["samples_trained"] == 30000);
}

TEST_CASE("an output that cannot be written is a failure") {
  for (const std::string command : {"leeway settings", "linear-regression --no-out"}) {
    const auto ran = run_program({"/bin/sh", "-c", concat(kBin, '/', command, " > /dev/full")});
    CHECK(ran.code == 1);
    CHECK(contains(ran.err, "the output could not be written; check the disk"));
  }
}

TEST_CASE("fashion-mlp learns on real data, with a worker that is slow in bursts") {
  const TemporaryFolder folder;
  const auto ran = run_program({kBin + "/fashion-mlp", "--epochs", "1", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const auto result = read_json(folder / "run/result.json");
  CHECK(result["test_accuracy"] > 0.78);
  CHECK(result["samples_trained"] == 60000);
  CHECK(result["max_clock_gap"] <= 4);
  CHECK(result["staleness_bound"] == 3);
  for (const char* words :
       {"test accuracy", "clock gap", "waiting", "Version lag", "Longest waits between workers"})
    CHECK(contains(ran.out, words));
}

TEST_CASE("char-gpt learns a given text, and leeway sample continues a prompt") {
  const TemporaryFolder folder;
  const std::string file = folder / "text.txt";
  write_days(file);
  const auto ran = run_program({kBin + "/char-gpt", "--data", file, "--epochs", "0.3", "--workers",
                                "3", "--slow", "1:3x", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  CHECK(contains(ran.out, "Generated text:"));
  const auto result = read_json(folder / "run/result.json");
  CHECK(result["test_loss"] < 2.6);  // 3.3 for a random guess
  CHECK(result["test_accuracy"] < 1);
  CHECK(read_json(folder / "run/vocabulary.json")["characters"].size() == 28);
  const std::vector<std::string> command = {
      kBin + "/leeway", "sample", folder / "run", "--prompt", "The evening and ",
      "--characters",   "50",     "--seed",       "7"};
  const auto once = run_program(command), again = run_program(command);
  INFO(once.err);
  REQUIRE(once.code == 0);
  CHECK(once.out.starts_with("The evening and "));
  CHECK(once.out.size() == 16 + 50 + 1);
  CHECK(once.out == again.out);
  const auto unknown =
      run_program({kBin + "/leeway", "sample", folder / "run", "--prompt", "Zebra"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "\"Z\" does not occur in the training text; leave it out"));
  const auto missing = run_program({kBin + "/char-gpt", "--data", folder / "nothing.txt"});
  CHECK(missing.code == 2);
  CHECK(contains(missing.err, "; give --data FILE, a text in UTF-8"));
}

TEST_CASE("pipeline-gpt learns the same on threads, in virtual time and on nodes") {
  const TemporaryFolder folder;
  write_days(folder / "text.txt");
  Process up({kBin + "/leeway", "up", "2"});
  const bool is_up = comes_true([&] { return contains(up.out(), "Ctrl-C"); });
  const std::string text = up.out();
  INFO(text << up.err());
  REQUIRE(is_up);
  REQUIRE(contains(text, "--nodes "));
  const auto begin = text.find("--nodes ") + 8;
  const std::string nodes = text.substr(begin, text.find('\n', begin) - begin);
  std::string weights;
  for (const std::vector<std::string>& host :
       {std::vector<std::string>{}, {"--simulate"}, {"--nodes", nodes}}) {
    std::vector<std::string> command = {kBin + "/pipeline-gpt", "--data", folder / "text.txt"};
    command.insert(command.end(), {"--iterations", "30", "--evaluate-every", "0", "--out"});
    command.push_back(folder / concat("run", host.size()));
    const std::string out = command.back();
    command.insert(command.end(), host.begin(), host.end());
    const auto ran = run_program(command);
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    CHECK(contains(ran.out, "1 pipeline of 2 stages (1f1b, 16 micro-batches)"));
    CHECK(contains(ran.out, "Pipeline 0, stage 1: computed "));
    CHECK(contains(ran.out, "Generated text:"));
    const auto result = read_json(out + "/result.json");
    CHECK(result["test_loss"] < 3);  // 3.3 for a random guess
    CHECK(result["samples_trained"] == 30 * 32);
    const std::string found = read_text(out + "/weights.safetensors");
    REQUIRE(found.size() > 100);
    if (weights.empty()) weights = found;
    CHECK(found == weights);
  }
  up.signal(SIGINT);
  CHECK(up.wait() == 0);
}

TEST_CASE("without gradients no losses, accuracies or texts are printed") {
  const TemporaryFolder folder;
  write_days(folder / "text.txt");
  for (const std::string program : {"pipeline-gpt", "char-gpt"}) {
    const auto ran = run_program({kBin + '/' + program, "--data", folder / "text.txt", "--simulate",
                                  "--gradients", "none", "--epochs", "0.1", "--no-out"});
    INFO(ran.out << ran.err);
    CHECK(ran.code == 0);
    CHECK(contains(ran.out, "samples trained"));
    for (const char* text : {"loss", "accuracy", "Generated text", "Memory of a stage"})
      CHECK_FALSE(contains(ran.out, text));
  }
}

TEST_CASE("killed workers are named, and the run trains every sample") {
  const TemporaryFolder folder;
  const auto ran = run_program({kBin + "/fashion-mlp", "--epochs", "0.5", "--fault", "2:killed@20",
                                "--fault", "1:throws@30", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.err, "worker 2 ended and was evicted"));
  CHECK(contains(ran.err, "worker 1 ended and was evicted"));
  CHECK(read_json(folder / "run/result.json")["samples_trained"] == 30000);
}

TEST_CASE("without live workers the run fails and saves its weights") {
  const TemporaryFolder folder;
  const auto ran =
      run_program({kBin + "/fashion-mlp", "--workers", "2", "--slow", "none", "--fault",
                   "0:throws@20", "--fault", "1:throws@25", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 1);
  CHECK(contains(ran.err, "no worker is left"));
  CHECK(read_safetensors(folder / "run/weights.safetensors").has_value());
}

TEST_CASE("Ctrl-C stops a run cleanly and saves the weights") {
  for (const char* staleness : {"3", "bsp", "asp"}) {
    const TemporaryFolder folder;
    Process process({kBin + "/fashion-mlp", "--epochs", "1000", "--staleness", staleness, "--out",
                     folder / "run"});
    // Training has begun once metrics are written.
    CHECK(comes_true([&] { return !read_text(folder / "run/metrics.jsonl").empty(); }));
    process.signal(SIGINT);
    CHECK(process.wait() == 130);
    INFO(staleness << process.out() << process.err());
    const auto result = read_json(folder / "run/result.json");
    CHECK(result["reason"] == "interrupted");
    CHECK(result["partial_pushes"] == 0);
    const auto weights = read_safetensors(folder / "run/weights.safetensors");
    REQUIRE(weights.has_value());
    CHECK(weights->tensors.front().name == "1.weight");
    CHECK(weights->tensors.front().shape == Shape{512, 784});
  }
}

TEST_CASE("Ctrl-C stops a program of several runs, which names the interrupted run") {
  const TemporaryFolder folder;
  Process process({kBin + "/crash-and-rejoin", "--epochs", "1000", "--out", folder / "study"});
  CHECK(comes_true([&] { return !read_text(folder / "study/undisturbed/metrics.jsonl").empty(); }));
  process.signal(SIGINT);
  CHECK(process.wait() == 130);
  CHECK(process.err() == "crash-and-rejoin: undisturbed: interrupted\n");
}

TEST_CASE("a loss that is not finite stops the run and names worker, iteration and layer") {
  const auto ran = run_program({kBin + "/fashion-mlp", "--lr", "1e18", "--no-out"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 1);
  CHECK(contains(ran.err, "the loss became"));
  CHECK(contains(ran.err, "in iteration"));
  CHECK(contains(ran.err, "layer"));
}

TEST_CASE("workers restart and join in the middle of a run") {
  const TemporaryFolder folder;
  const auto ran =
      run_program({kBin + "/fashion-mlp", "--epochs", "2", "--slow", "none", "--fault",
                   "2:crash(50ms)@20", "--fault", "1:joins@50ms", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.err, "worker 2 ended and was evicted"));
  CHECK(contains(ran.err, "worker 2 is back\n"));
  CHECK(contains(ran.out, "   came back after: fault of the plan: crash\n"));
  CHECK(contains(read_text(folder / "run/metrics.jsonl"), "{\"worker_back\":2}\n"));
  const auto result = read_json(folder / "run/result.json");
  CHECK(result["samples_trained"] == 120000);
  CHECK(result["workers"][2]["came_back_after"] == "fault of the plan: crash");
  CHECK_FALSE(result["workers"][2].contains("ended"));
  CHECK_FALSE(contains(ran.err, "worker 1 is back"));  // its first join
  for (const auto& worker : result["workers"]) CHECK(worker["samples"] > 5000);
}

TEST_CASE("the crash atlas of a program reports how often each process was lost, and no loss") {
  const auto ran =
      run_program({kBin + "/leeway", "atlas", "crashes", "linear-regression", "--second", "50"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  CHECK_THAT(ran.out, Catch::Contains("each is lost after each of its messages") &&
                          Catch::Contains("updates lost") && Catch::Contains("primary") &&
                          Catch::Contains("lost a second process during the recovery"));
  const auto alone = run_program(
      {kBin + "/linear-regression", "--crash-atlas", "--second", "1", "--workers", "1"});
  CHECK(alone.code == 2);
  CHECK_THAT(alone.err, Catch::Contains("give --workers 2 or more"));
}

TEST_CASE("fuzzing a correct program reports the number of runs and no failures") {
  const TemporaryFolder folder;
  const auto ran = run_program({kBin + "/leeway", "fuzz", "linear-regression", "--seeds", "5..34",
                                "--out", folder / "found"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "30 runs drawn from seeds 5 to 34"));
  CHECK(contains(ran.out, "; 0 failed"));
  CHECK_FALSE(std::filesystem::exists(folder / "found"));
}

TEST_CASE("a run that fails in simulation fails again from its plan file") {
  const TemporaryFolder folder;
  const std::vector<std::string> faults = {"--simulate", "--fault", "shard0:crash@10ms", "--quiet",
                                           "--no-out"};
  auto command = faults;
  command.insert(command.begin(), kBin + "/linear-regression");
  const auto ran = run_program(command);
  CHECK(ran.code == 1);
  CHECK(contains(ran.err, "shard 0 ended: fault of the plan: crash for good"));
  command.push_back("--plan");
  std::ofstream(folder / "plan.json") << run_program(command).out;
  const auto again =
      run_program({kBin + "/leeway", "run", folder / "plan.json", "--quiet", "--no-out"});
  CHECK(again.code == 1);
  CHECK(contains(again.err, "shard 0 ended: fault of the plan: crash for good"));
}

TEST_CASE("invalid arguments are refused with an allowed value") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--staleness", "three"}, "give --staleness 3"},
      {{"--workers", "0"}, "--workers 1"},
      {{"--workers", "many"}, "--workers"},
      {{"--epocs", "3"}, "did you mean --epochs?"},
      {{"--slow", "9:4x"}, "worker 9"},
      {{"--slow", "nonsense"}, "3:4x"},
      {{"--fault", "nonsense"}, "2:crash@3s"},
      {{"--fault", "2:partition(1s)@3s"}, "give --simulate"},
      {{"--fault", "9:crash@3s"}, "there is no worker 9"},
      {{"--simulate", "--fault", "2:freeze(-1s)@3s"}, "seconds above 0"},
      {{"--simulate", "--fault", "2:break(2,1s)@3s"}, "the actor itself"},
      {{"--fuzz", "9..1"}, "give 1..2000"},
      {{"--from", "/nowhere.json"}, "/nowhere.json"},
      {{"--data", "/nowhere"}, "/nowhere"},
      {{"--optimizer", "adm"}, "did you mean"},
      {{"--lr", "-1"}, "--lr"},
      {{"--prefetch", "--staleness", "bsp"}, "prefetch"},
      {{"--shards", "4000"}, "--shards 1 to"},
      {{"--device", "gpu"}, "give cpu"},
      {{"--device", "worker9=cuda"}, "no worker 9"},
      {{"--augment", "turn"}, "--augment flip"},
      {{"--augment", "shift=28"}, "shift=27 or less"},
      {{"--init", "/nowhere"}, "/nowhere"},
      {{"--out", "/proc/nowhere"}, "--out"}};
  for (const auto& [arguments, expected] : cases) {
    std::vector<std::string> command = {kBin + "/fashion-mlp", "--no-out"};
    if (arguments.front() == "--out") command.pop_back();
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto ran = run_program(command);
    INFO(arguments.front() << ' ' << arguments.back() << ": " << ran.err);
    CHECK(ran.code == 2);
    CHECK(contains(ran.err, expected));
  }
}

TEST_CASE("--help, --plan and --no-out") {
  const auto help = run_program({kBin + "/fashion-mlp", "--help"});
  CHECK(help.code == 0);
  for (const char* flag :
       {"--workers", "--shards", "--staleness", "--slow", "--epochs", "--batch", "--seed",
        "--device", "--init", "--augment", "--profile", "--out", "--plan"})
    CHECK(contains(help.out, flag));
  const auto plan = run_program({kBin + "/fashion-mlp", "--plan", "--workers", "7"});
  CHECK(plan.code == 0);
  CHECK(nlohmann::json::parse(plan.out)["workers"] == 7);
}

}  // namespace leeway::test
