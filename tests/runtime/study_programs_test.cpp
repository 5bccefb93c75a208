// The shipped programs that compare several runs, as a user runs them.
#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include "core/text.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

const std::string kPrograms = LEEWAY_BIN;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Runs `leeway reproduce` with these words, and again in the same folder. Returns its table.
std::string check_reproduction(const std::vector<std::string>& words,
                               const std::vector<std::string>& parts) {
  const TemporaryFolder folder;
  std::vector<std::string> command = {kPrograms + "/leeway", "reproduce"};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"--out", folder / "run"});
  const auto ran = run_program(command);
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  std::string table = read_text(folder / "run/table.txt");
  for (const std::string& part : parts) CHECK(has(table, part));
  // Other traces than the published ones have no verdict.
  CHECK(has(table, "\nVerdict: ") == (words.front() != "what-if"));
  CHECK(has(read_text(folder / "run/picture.svg"), "<svg"));
  CHECK(has(ran.err, " runs, "));  // progress without a terminal
  CHECK(has(ran.err, " left\n"));
  REQUIRE(run_program(command).code == 0);
  CHECK(read_text(folder / "run/table.txt") == table);
  return table;
}

}  // namespace

TEST_CASE("bubble-study measures the bubbles of the formulas, and larger ones on a slow network") {
  const TemporaryFolder folder;
  const auto ran = run_program({kPrograms + "/bubble-study", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const std::string table = read_text(folder / "run/table.txt");
  CHECK(has(ran.out, table));
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb_h1", "interleaved_zb", "zb_v",
                               "dualpipe_v", "weight_stashing", "2bw"})
    CHECK(has(table, schedule));
  CHECK(has(table, "42.86% (42.86%)"));
  // No formula: eight stages with four micro-batches (interleaved, zb_h1 and interleaved_zb), and
  // zb_v with fewer than two micro-batches per stage.
  const std::string row = table.substr(table.find("zb_h1            8"));
  CHECK(has(row.substr(0, row.find('\n')), "%*) "));
  CHECK(std::count(table.begin(), table.end(), '*') == 7);
  CHECK(has(table, "* No formula for these sizes"));
  CHECK(has(table, "Measured and expected differ by at most 0.0000 percentage points."));
  const auto slow =
      run_program({kPrograms + "/bubble-study", "--world", "latency=1ms", "--no-out"});
  INFO(slow.out << slow.err);
  REQUIRE(slow.code == 0);
  CHECK_FALSE(has(slow.out, "at most 0.0000"));
}

TEST_CASE("an interrupted study exits with 130 and keeps its completed rows") {
  for (const std::string program : {"bubble-study", "async-pipelines", "stragglers"}) {
    // Repeats an attempt in which the program ended before the signal.
    int code = 0;
    for (int attempt = 0; attempt < 5 && code == 0; ++attempt) {
      const TemporaryFolder folder;
      const std::string table = folder / "run/table.txt";
      std::vector<std::string> command = {kPrograms + '/' + program, "--out", folder / "run"};
      if (program != "bubble-study") command.insert(command.end(), {"--epochs", "0.05"});
      Process process(std::move(command));
      const auto rows = [&] {
        const std::string text = read_text(table);
        return std::count(text.begin(), text.end(), '\n');
      };
      comes_true([&] { return rows() >= 6; });
      process.signal(SIGINT);
      code = process.wait();
      INFO(program << process.out() << process.err());
      CHECK(rows() >= 6);
      CHECK(has(process.out(), read_text(table)));
    }
    INFO(program);
    CHECK(code == 130);  // the same if the signal arrives between two runs
  }
}

TEST_CASE("studies refuse flags without effect, and settings that fail in a later run") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"bubble-study", "--batch", "4"}, "--batch: "},
      {{"bubble-study", "--nodes", "127.0.0.1:1"}, "--nodes: "},
      {{"bubble-study", "--gradients", "real"}, "--gradients: "},
      {{"bubble-study", "--slow", "3:2x"}, "there is no worker 3"},
      {{"straggling-stage", "--split", "0-3,4-16"}, "--split: "},
      {{"straggling-stage", "--schedule", "2bw"}, "give one of gpipe, 1f1b"},
      {{"async-pipelines", "--batch", "5"}, "give --batch 12 or more"},
      {{"async-pipelines", "--staleness", "bsp"}, "weight_stashing"},
      {{"stragglers", "--stages", "2"}, "--stages: "},
      {{"stragglers", "--workers", "2"}, "give --workers 4 or more, or a slow worker with --slow"},
      {{"stragglers", "--workers", "1", "--slow", "0:4x"}, "give --workers 2 or more"},
      {{"stragglers-and-bounds", "--staleness", "3"}, "--staleness: "},
      {{"backup-workers", "--workers", "32"}, "give --workers 33 or more"},
      {{"crash-and-rejoin", "--stages", "2"}, "give --workers 4 or more"},
      {{"crash-and-rejoin", "--fault", "none"}, "are left; give faults such as --fault"}};
  for (const auto& [words, expected] : cases) {
    std::vector<std::string> command = words;
    command.front() = kPrograms + '/' + command.front();
    command.emplace_back("--no-out");
    const auto ran = run_program(command);
    INFO(words.front() << ' ' << words[1] << ": " << ran.out << ran.err);
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, words.front() + ": "));
    CHECK(has(ran.err, expected));
  }
}

TEST_CASE("straggling-stage and async-pipelines print and save their tables") {
  const TemporaryFolder folder;
  const auto stage =
      run_program({kPrograms + "/straggling-stage", "--epochs", "0.03", "--out", folder / "stage"});
  INFO(stage.out << stage.err);
  REQUIRE(stage.code == 0);
  const std::string stage_table = read_text(folder / "stage/table.txt");
  CHECK(has(stage_table, "slow, bsp, fewer layers "));
  CHECK(has(stage.out, stage_table));
  for (const char* row :
       {"no slow stage, bsp ", "no slow stage, ssp(3) ", "slow, bsp ", "slow, ssp(3), by speed ",
        "slow, bsp, fewer layers ", "bursts, ssp(3) ", "The slow stage makes bsp take "})
    CHECK(has(stage.out, row));
  const auto async = run_program({kPrograms + "/async-pipelines", "--epochs", "0.03",
                                  "--evaluate-every", "0.01", "--out", folder / "async"});
  INFO(async.out << async.err);
  REQUIRE(async.code == 0);
  const std::string async_table = read_text(folder / "async/table.txt");
  CHECK(has(async_table, "weight_stashing "));
  CHECK(has(async.out, async_table));
  for (const char* words :
       {"1 micro-batch per update, learning rate 0.01", "12 micro-batches per update", "zb_h1 ",
        "weight_stashing ", "2bw   needs more micro-batches"})
    CHECK(has(async.out, words));
  CHECK(has(read_text(folder / "async/loss.svg"), "<svg"));
  // Schedules with a flush make the same updates, so zb_h1, with smaller bubbles, is faster.
  std::istringstream lines(async_table);
  std::string flushed;
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string schedule, seconds, idle, lag, target;
    words >> schedule >> seconds >> idle >> lag >> target;
    if (schedule == "1f1b") flushed = target;
    if (schedule != "zb_h1") continue;
    CHECK((flushed == "never") == (target == "never"));
    if (target == "never") continue;
    CHECK(std::stod(target) < std::stod(flushed));
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("stragglers compares sixteen runs") {
  const TemporaryFolder folder;
  const auto ran =
      run_program({kPrograms + "/stragglers", "--epochs", "0.1", "--out", folder / "run"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const std::string table = read_text(folder / "run/table.txt");
  for (const char* policy :
       {"bsp", "backup(1)", "ssp(1)", "ssp(2)", "ssp(4)", "ssp(8)", "adaptive(1,8)", "asp"})
    CHECK(has(table, policy));
  CHECK(has(read_text(folder / "run/loss.svg"), "<svg"));
  CHECK(read_json(folder / "run/ssp(4)-straggler/result.json")["max_clock_gap"] <= 5);
  const auto adaptive = read_json(folder / "run/adaptive(1,8)-straggler/result.json");
  CHECK(adaptive["least_staleness_bound"] == 1);
  CHECK(adaptive["staleness_bound"] == 8);
}

TEST_CASE("stragglers-and-bounds tabulates and draws every policy in every world") {
  const TemporaryFolder folder;
  const std::vector<std::string> command = {kPrograms + "/stragglers-and-bounds",
                                            "--epochs",
                                            "0.06",
                                            "--evaluate-every",
                                            "0.02",
                                            "--workers",
                                            "4",
                                            "--out",
                                            folder / "run"};
  const auto ran = run_program(command);
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const std::string table = read_text(folder / "run/table.txt");
  const std::string picture = read_text(folder / "run/loss.svg");
  CHECK(has(ran.out, table));
  for (const char* world :
       {"equal workers", "one worker slow in bursts", "one worker always 4 times as slow",
        "a heavy tail for all", "a slow network"}) {
    const auto at = table.find(concat('\n', world, '\n'));
    REQUIRE(at != std::string::npos);
    CHECK(has(picture, world));
    const std::string rows = table.substr(at, table.find("\n\n", table.find("lag", at)) - at);
    for (const char* policy :
         {"  bsp  ", "  bsp, by speed  ", "  backup(1)  ", "  ssp(1)  ", "  ssp(3)  ",
          " ssp(3), by speed  ", "  ssp(8)  ", "  adaptive(1,8)  ", "  asp  "})
      CHECK(has(rows, policy));
  }
  const auto again = run_program(command);
  CHECK(again.code == 2);
  CHECK(has(again.err, "give another with --out DIR"));
}

TEST_CASE("staleness-atlas tabulates every method, and continues in its folder") {
  const TemporaryFolder folder;
  const std::vector<std::string> command = {kPrograms + "/staleness-atlas",
                                            "--epochs",
                                            "0.02",
                                            "--evaluate-every",
                                            "0.02",
                                            "--workers",
                                            "3",
                                            "--out",
                                            folder / "run"};
  const auto ran = run_program(command);
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const std::string table = read_text(folder / "run/table.txt");
  for (const char* method : {" bsp ", " backup(2) ", " asp, lag_scaled(1) ", " asp, gap_aware ",
                             " asp, delay_compensated(2,0.95) ", " asp, ordered_momentum "})
    CHECK(has(table, method));
  for (const char* part :
       {"\nsgd: virtual seconds to 85%", "\nmomentum: virtual seconds to 85%", "best / no waits",
        "auto / best", "time of bsp / time", "rate (! edge); accuracy; loss",
        "\nsgd: asynchrony loses in these cases", "\nmomentum: asynchrony loses in these cases",
        "  heavy tail: "})
    CHECK(has(table, part));
  CHECK(has(read_text(folder / "run/heat-map-sgd.svg"), "<svg"));

  // A run that was killed while it wrote a line.
  const std::string trials = read_text(folder / "run/trials.jsonl");
  std::ofstream(folder / "run/trials.jsonl") << trials.substr(0, trials.size() / 2);
  REQUIRE(run_program(command).code == 0);
  CHECK(read_text(folder / "run/table.txt") == table);

  auto other = command;
  other.insert(other.end(), {"--seed", "7"});
  const auto refused = run_program(other);
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "give another --out"));
}

TEST_CASE("one-step-delay prints published gaps beside its own, and continues in its folder") {
  check_reproduction({"one-step-delay", "--epochs", "0.0002"},
                     {" adamw, beta1 0.9 ", " nadam, beta1 0.99 ", " muon ", " above 0.2 ",
                      "deviation", "one step of delay costs adamw", "\n      32 ", " 5.81 ",
                      "Updates to the target, of each seed", "stashing, 16 stages"});
}

TEST_CASE("ringmaster prints the published order beside its own, and continues in its folder") {
  check_reproduction({"ringmaster", "--workers", "6", "--seconds", "0.2", "--evaluate-every", "1"},
                     {" delay_threshold(10) ", " delay_adaptive(10 lr) ", " adaptive(1,100) ",
                      "Virtual seconds to a loss of 0.02 with 6 workers", "\"tuned\"",
                      "published: Ringmaster", "of each seed"});
}

TEST_CASE("goodput prints published shares beside its own, and continues in its folder") {
  check_reproduction({"goodput", "--seconds", "60", "--epochs", "0.002"},
                     {"1.2 million chips, 8 learners", "88.00%", "renewals", "radial-directional",
                      "dropped pushes", "elastic, 8 replicas     40.00%",
                      "\n   3                mean", "\n   7                mean", "K = 5, mean"});
}

TEST_CASE(
    "backup-workers prints the published number beside its own, and continues in its folder") {
  check_reproduction(
      {"backup-workers", "--workers", "34", "--epochs", "0.02"},
      {"with 34 workers", "last gradient within 2 s (fitted for 100 workers)", "66.33%",
       "\n         bsp ", "\n  backup(32) ", "\n         asp ", "of each seed"});
}

TEST_CASE(
    "async-local-sgd has the published times, and equal losses if the grace window is longer than "
    "a phase") {
  const std::string table = check_reproduction(
      {"async-local-sgd", "--epochs", "0.02"},
      {"a synchronous phase      66.60      66.60       0.00    equal\n",
       "asynchronous, step 800     209.00     209.00       0.00    equal\n",
       "asynchronous, step 1600     406.40     406.40       0.00    equal\n",
       "asynchronous, step 2400     603.80     603.80       0.00    equal\n",
       "asynchronous, step 3200     801.40     801.40       0.00    equal\n",
       "asynchronous, step 4000     999.00     999.00       0.00    equal\n",
       "small task, asynchronous       999 ", "momentum 0.9, synchronous ",
       "Verdict: reproduced; the virtual times, digit for digit.\n",
       "Verdict: reproduced; with a grace window longer than a phase, asynchronous equals "
       "synchronous.\n"});
  std::istringstream rows(table.substr(table.find("verdict", table.find("longer than a phase"))));
  std::string step, seconds, synchronous, asynchronous, verdict;
  rows >> verdict;
  for (int phase = 0; phase <= 5; ++phase) {
    rows >> step >> seconds >> synchronous >> asynchronous >> verdict;
    CHECK(step == concat(80 * phase));
    CHECK(synchronous == asynchronous);
    CHECK(verdict == "equal");
  }
}

TEST_CASE("leeway reproduce names an unknown result, and the nearest known one or all of them") {
  CHECK(run_program({kPrograms + "/leeway", "reproduce"}).code == 2);
  const auto error_of = [](const std::string& name) {
    const auto refused = run_program({kPrograms + "/leeway", "reproduce", name, "--no-out"});
    CHECK(refused.code == 2);
    return refused.err;
  };
  CHECK(has(error_of("ringmastr"),
            "unknown published result \"ringmastr\"; did you mean \"ringmaster\"?"));
  CHECK(has(
      error_of("foo"),
      "\"foo\"; known are async-local-sgd, backup-workers, goodput, one-step-delay, ringmaster, "
      "what-if"));
}

TEST_CASE("what-if names the slow rank of a trace, and replays its durations with gradients") {
  const TemporaryFolder folder;
  // Stage 1 of replica 1 takes 3 s for each computation, the others 1 s.
  std::string trace = "dp_rank,stage,step,optype,start_ts,duration,seq_id\n";
  for (int step = 0; step < 3; ++step)
    for (int replica = 0; replica < 2; ++replica)
      for (int stage = 0; stage < 2; ++stage)
        for (int number = 0; number < 4; ++number) {
          const int seconds = replica == 1 && stage == 1 ? 3 : 1;
          trace += concat(replica, ',', stage, ',', step, ',',
                          number < 2 ? "forward-compute" : "backward-compute", ',',
                          100 * step + number * seconds, ',', seconds, ',', number % 2, '\n');
        }
  std::ofstream(folder / "slow.csv") << trace;
  const std::string table = check_reproduction(
      {"what-if", folder / "slow.csv", "--epochs", "0.01"},
      {"slow.csv: 2 replicas of 2 stages, 2 micro-batches, 3 steps", " slowdown         -  2.000",
       "One rank explains", "replica 1, stage 1", "  no stragglers ", "  2bw, ssp(1) ",
       "  backup(1) ", "  quorum(half,mad) ", "Test losses of each seed"});
  // 1f1b takes three slots of the slow stage, and two or three of the other one.
  const std::string row = table.substr(table.find("pipelines, bsp"));
  std::istringstream words(row.substr(row.find("bsp") + 3));
  double seconds = 0;
  words >> seconds;
  CHECK(seconds >= 12);
  CHECK(seconds <= 15);
}

TEST_CASE("what-if refuses missing traces, and pipelines with different micro-batches") {
  const TemporaryFolder folder;
  const std::string head = "dp_rank,stage,step,optype,start_ts,duration,seq_id\n";
  std::ofstream(folder / "uneven.csv") << head << "0,0,0,forward-compute,0,1,0\n"
                                       << "1,0,0,backward-compute,0,1,0\n";
  const auto error_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), {kPrograms + "/leeway", "reproduce", "what-if"});
    words.emplace_back("--no-out");
    const auto ran = run_program(words);
    CHECK(ran.code == 2);
    return ran.err;
  };
  CHECK(has(error_of({}), "no trace is given; give CSV files"));
  CHECK(has(error_of({folder / "missing.csv"}), "StragglerAnalysis"));
  std::ofstream(folder / "one.csv") << head << "0,0,0,forward-compute,0,1,0\n"
                                    << "0,1,0,forward-compute,0,1,0\n";
  CHECK(has(error_of({folder / "one.csv"}), "has 1 replica of 2 stages, with 1 micro-batch;"));
  std::ofstream two(folder / "two.csv");
  two << head;
  for (const char* rank : {"0,0", "0,1", "1,0", "1,1"}) two << rank << ",0,forward-compute,0,1,0\n";
  two.close();
  const std::string twice = folder / "two.csv";
  CHECK(has(error_of({twice, twice}), "another trace has this name; rename one of them"));
  CHECK(has(error_of({folder / "uneven.csv"}),
            "replica 1, stage 0 has no computation that takes time"));
}

}  // namespace leeway::test
