// Programs refuse to resume from a checkpoint that they cannot continue, and to share a folder of
// checkpoints. The refusal names the cause and changes no file.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "checkpoint/manifest.hpp"
#include "core/text.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/process.hpp"

namespace leeway::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

const std::string kBin = LEEWAY_BIN;

/// The content of every file below a folder.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    files[entry.path().string()] = entry.is_directory() ? "" : read_text(entry.path().string());
  return files;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Replaces the first `from` in a file.
void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_text(path);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_text(path, text.replace(at, from.size(), to));
}

/// The names in a folder, sorted.
Words names(const std::string& folder) {
  Words names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The path of a checkpoint of a run, counted from 0 for the first.
std::string checkpoint_of(const std::string& run, std::size_t index) {
  return run + "/checkpoints/" + names(run + "/checkpoints").at(index);
}

/// A folder for runs of a small plan.
class Runs {
 public:
  Runs() {
    std::string data = "x,y,label\n";
    for (int i = 0; i < 2500; ++i) data += concat(i % 7, ',', i % 5, ',', i % 7 > 3 ? 1 : 0, '\n');
    write_text(folder / "data.csv", data);
    write_text(folder / "plan.toml",
               concat("name = \"small\"\n",
                      "model = [{ linear.outputs = 64 }, \"relu\", { linear.outputs = 2 }]\n",
                      "data.csv.train = \"", folder / "data.csv", "\"\n"));
  }

  /// Trains an epoch, with two or more checkpoints. Returns the run's folder.
  std::string train(const std::string& name, const Words& more = {}) const {
    const auto ran = run_program(command(name, "1", "20it", more));
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    REQUIRE(names(folder / name + "/checkpoints").size() > 2);
    return folder / name;
  }
  Words command(const std::string& name, const std::string& epochs, const std::string& every,
                const Words& more = {}) const {
    Words words{kBin + "/leeway",
                "run",
                folder / "plan.toml",
                "--epochs",
                epochs,
                "--shards",
                "2",
                "--optimizer",
                "momentum",
                "--batch",
                "16",
                "--checkpoint-every",
                every,
                "--keep",
                "1000",
                "--quiet",
                "--out",
                folder / name};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// Runs a command that must be refused without a change of any file. Returns its error.
  std::string refusal(const Words& words) const {
    const auto before = contents(folder / ".");
    const auto ran = run_program(words);
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(contents(folder / ".") == before);
    return ran.err;
  }
  std::string refused_resume(const std::string& from, const Words& more = {}) const {
    Words words{kBin + "/leeway", "resume", from, "--epochs", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return refusal(words);
  }

  TemporaryFolder folder;
};

/// A run that trains until it is stopped, and has begun.
struct Training {
  Training(const Runs& runs, const std::string& name, const Words& more)
      : process(runs.command(name, "1000000", "20it", more)) {
    const std::string metrics = runs.folder / name + "/metrics.jsonl";
    CHECK(comes_true([&] { return !read_text(metrics).empty(); }));
  }
  /// The run must be unharmed.
  ~Training() {
    process.signal(SIGINT);
    CHECK(process.wait() == 130);
  }
  Process process;
};

}  // namespace

TEST_CASE("a flipped bit in any file is refused by the file's name") {
  const Runs runs;
  const std::string run = runs.train("run");
  const std::string checkpoint = checkpoint_of(run, 1);
  for (const std::string& name : names(checkpoint)) {
    const std::string path = checkpoint + '/' + name;
    const std::string text = read_text(path);
    REQUIRE(text.size() > 10);
    for (const std::size_t at : {std::size_t(3), text.size() / 2, text.size() - 2}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      write_text(path, damaged);
      INFO(path << " at " << at);
      CHECK_THAT(runs.refused_resume(checkpoint), Contains(path));
      const auto listed = run_program({kBin + "/leeway", "checkpoints", run, "--verify"});
      CHECK(listed.code == 1);
      CHECK_THAT(listed.out, Contains("damaged: " + path));
    }
    write_text(path, text);
  }
  write_text(checkpoint + "/weights-1.safetensors", "");
  CHECK_THAT(runs.refused_resume(checkpoint),
             Contains("an earlier checkpoint is " + checkpoint_of(run, 0)));
  const auto resumed = run_program(
      {kBin + "/leeway", "resume", checkpoint_of(run, 0), "--out", runs.folder / "new", "--quiet"});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.code == 0);
  CHECK(read_json(runs.folder / "new/result.json")["samples_trained"] == 2000);
}

TEST_CASE("the result and the list of checkpoints give the size of all files but the manifest") {
  const Runs runs;
  const std::string run = runs.train("run");
  Words checkpoints = names(run + "/checkpoints");
  std::erase_if(checkpoints, [](const std::string& name) { return name.starts_with("run"); });
  const std::string checkpoint = run + "/checkpoints/" + checkpoints.back();
  std::uint64_t bytes = 0;
  for (const std::string& name : names(checkpoint))
    if (name != "manifest.json") bytes += read_text(checkpoint + '/' + name).size();
  CHECK(read_json(run + "/result.json").at("checkpoints").back().at("bytes") == bytes);
  CHECK_THAT(run_program({kBin + "/leeway", "checkpoints", run}).out, Contains(size_text(bytes)));
}

TEST_CASE("a run continues in its folder from a checkpoint before one with a damaged manifest") {
  const Runs runs;
  const std::string run = runs.train("run");
  const Words all = names(run + "/checkpoints");
  std::vector<std::string> checkpoints;
  for (const std::string& name : all)
    if (name != "run") checkpoints.push_back(run + "/checkpoints/" + name);
  REQUIRE(checkpoints.size() > 1);
  const std::string newest = checkpoints.back(), earlier = checkpoints[checkpoints.size() - 2];
  write_text(newest + "/manifest.json", "{}");
  CHECK_THAT(runs.refused_resume(run), Contains(newest + "/manifest.json") &&
                                           Contains("an earlier checkpoint is " + earlier));
  const auto resumed =
      run_program({kBin + "/leeway", "resume", earlier, "--epochs", "2", "--quiet"});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.code == 0);
  CHECK(read_json(run + "/result.json")["samples_trained"] == 4000);
}

TEST_CASE("a run that was moved, with its checkpoints in a folder of their own, is resumed there") {
  const Runs runs;
  const std::string own = runs.folder / "own", moved = runs.folder / "moved";
  const auto trained = run_program(runs.command("run", "1", "20it", {"--checkpoint-dir", own}));
  INFO(trained.out << trained.err);
  REQUIRE(trained.code == 0);
  fs::rename(own, moved);
  const auto resumed = run_program({kBin + "/leeway", "resume", moved, "--epochs", "2", "--out",
                                    runs.folder / "new", "--quiet"});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.code == 0);
  CHECK_FALSE(fs::exists(own));
  CHECK(read_json(runs.folder / "new/result.json")["samples_trained"] == 4000);
  CHECK(fs::exists(runs.folder / "new/checkpoints"));
}

TEST_CASE("a checkpoint with as many iterations as the limit is refused") {
  const Runs runs;
  const std::string run = runs.train("run");
  CHECK_THAT(runs.refusal({kBin + "/leeway", "resume", run, "--epochs", "9", "--iterations", "5"}),
             Contains("iterations are trained; give more with --iterations"));
}

TEST_CASE("a missing file is refused by its name, and a folder without a manifest is skipped") {
  const Runs runs;
  const std::string run = runs.train("run");
  const std::string checkpoint = checkpoint_of(run, 1);
  for (const std::string& name : names(checkpoint)) {
    const std::string path = checkpoint + '/' + name;
    const std::string text = read_text(path);
    fs::remove(path);
    INFO(path);
    if (name == "manifest.json") {
      CHECK_THAT(runs.refused_resume(checkpoint), Contains(checkpoint + ": holds no checkpoint"));
    } else {
      CHECK_THAT(runs.refused_resume(checkpoint),
                 Contains(path + ": cannot be read: No such file"));
    }
    write_text(path, text);
  }
}

TEST_CASE("checkpoints of another format, with unknown contents or of other runs are refused") {
  const Runs runs;
  const std::string run = runs.train("run"), other = runs.train("other", {"--seed", "2"});
  const std::string checkpoint = checkpoint_of(run, 0);
  const std::string manifest = checkpoint + "/manifest.json", original = read_text(manifest);
  const auto with = [&](const std::string& from, const std::string& to) {
    replace_in(manifest, from, to);
    const std::string error = runs.refused_resume(checkpoint);
    write_text(manifest, original);
    return error;
  };
  CHECK_THAT(with("\"format\": 1", "\"format\": 0"),
             Contains(manifest + ": is of format 0, written by Leeway ") &&
                 Contains("this program reads format 1: resume with that version"));
  // A later version would state the digest of these contents.
  std::string later = original.substr(0, original.rfind(",\n \"digest\"")) + "\n}";
  later.replace(later.find("\"optimizer\""), 11, "\"residuals\"");
  write_text(manifest, checkpoint::add_digest(later));
  CHECK_THAT(runs.refused_resume(checkpoint),
             Contains(manifest + ": holds \"residuals\", which this program does not know; "));
  write_text(manifest, original);

  const std::string others = checkpoint_of(other, 0);
  REQUIRE(fs::path(others).filename() == fs::path(checkpoint).filename());
  for (const std::string& name : names(checkpoint)) {
    const std::string path = checkpoint + '/' + name, mine = read_text(path);
    write_text(path, read_text(others + '/' + name));
    INFO(name);
    CHECK_THAT(runs.refused_resume(checkpoint),
               Contains(checkpoint) && (Contains("the file is damaged or of another checkpoint") ||
                                        Contains("is of another run than the folder")));
    write_text(path, mine);
  }
  fs::copy(others, run + "/checkpoints/000777");
  CHECK_THAT(runs.refused_resume(run), Contains("/000777/manifest.json: is of checkpoint 0"));
}

TEST_CASE("data of the same size with other values are refused") {
  const Runs runs;
  const std::string run = runs.train("run");
  replace_in(runs.folder / "data.csv", "0,0,0\n", "0,0,1\n");
  CHECK_THAT(runs.refused_resume(run),
             Contains("the data differ from those that the run began with; give the same data"));
}

TEST_CASE("data of another size are refused, also if all epochs of the smaller ones are trained") {
  const Runs runs;
  const std::string run = runs.train("run");
  write_text(runs.folder / "small.csv", "x,y,label\n1,2,0\n3,1,1\n2,2,0\n1,4,1\n0,3,1\n2,1,0\n");
  CHECK_THAT(runs.refused_resume(run, {"--data", runs.folder / "small.csv"}),
             Contains("the checkpoint has 2000 training samples per epoch, the data "));
}

TEST_CASE("a run whose plan is missing or damaged is resumed with the plan of its checkpoint") {
  const Runs runs;
  const bool damaged = GENERATE(true, false);
  const std::string run = runs.train("run");
  if (damaged)
    write_text(run + "/plan.json", "{");
  else
    fs::remove(run + "/plan.json");
  CHECK(run_program({kBin + "/leeway", "checkpoints", run, "--verify"}).code == 0);
  const auto ran = run_program({kBin + "/leeway", "resume", run, "--epochs", "2", "--quiet"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK_THAT(read_text(run + "/result.json"), Contains("\"samples_trained\": 4000"));
  CHECK_THAT(read_text(run + "/plan.json"), Contains("\"small\""));
}

TEST_CASE("a damaged plan that would name the folder of the checkpoints is refused by its name") {
  const Runs runs;
  const std::string run = runs.folder / "run";
  const auto ran = run_program(
      runs.command("run", "1", "20it", {"--checkpoint-dir", runs.folder / "elsewhere"}));
  REQUIRE(ran.code == 0);
  write_text(run + "/plan.json", "{");
  CHECK_THAT(runs.refused_resume(run), Contains(run + "/plan.json:"));
}

TEST_CASE("the printed command resumes a run in a folder with any name") {
  const Runs runs;
  const std::string name = "it's a run";
  Words words = runs.command(name, "1000000", "20it");
  std::erase(words, "--quiet");
  Process process(words);
  CHECK(comes_true([&] { return fs::exists(runs.folder / name + "/checkpoints/000001"); }));
  process.signal(SIGINT);
  CHECK(process.wait() == 130);
  const std::string mark = "Resume it with: ", text = process.out();
  const auto at = text.find(mark);
  REQUIRE(at != std::string::npos);
  const std::string command = text.substr(at + mark.size(), text.find('\n', at) - at - mark.size());
  const auto resumed =
      run_program({"/bin/sh", "-c", concat("PATH=", kBin, ":$PATH; ", command, " --plan")});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_THAT(resumed.out, Contains("\"small\""));
}

TEST_CASE("a run that was interrupted before and is killed at its end completes its result") {
  const Runs runs;
  const std::string run = runs.train("run");
  const Words resume{kBin + "/leeway", "resume", run, "--quiet", "--epochs", "2"};
  REQUIRE(run_program(resume).code == 0);
  // As if the process had been killed between the last checkpoint and the result.
  replace_in(run + "/result.json", "\"samples_trained\": 4000", "\"samples_trained\": 2000");
  REQUIRE(run_program(resume).code == 0);
  CHECK_THAT(read_text(run + "/result.json"), Contains("\"samples_trained\": 4000"));
  CHECK_THAT(runs.refusal(resume), Contains(": all 2 epochs are trained"));
}

TEST_CASE("a run of another scenario, a trained run and changes of the optimizer are refused") {
  const Runs runs;
  const std::string run = runs.train("run");
  CHECK_THAT(runs.refusal({kBin + "/linear-regression", "--resume", run}),
             Contains(run + " is a run of small; resume it with `leeway resume " + run + "`"));
  CHECK_THAT(runs.refusal({kBin + "/leeway", "resume", run}),
             Contains(": all 1 epochs are trained; give more with --epochs"));
  for (const char* optimizer : {"adam", "sgd"})
    CHECK_THAT(runs.refused_resume(run, {"--optimizer", optimizer}),
               Contains(concat(optimizer, " needs ")) &&
                   Contains("resume with the optimizer that the run began with"));
}

TEST_CASE("--resume of something else than a run or checkpoint is refused with what to give") {
  const Runs runs;
  const std::string run = runs.train("run"), empty = runs.folder / "empty";
  fs::create_directories(empty);
  fs::copy(checkpoint_of(run, 0), run + "/checkpoints/first");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {runs.folder / "nothing", "is not a folder; give the folder of a run, or latest"},
      {runs.folder / "plan.toml", "is not a folder; give the folder of a run, or latest"},
      {run + "/checkpoints/000099", "is not a folder; give the folder of a run, or latest"},
      {run + "/checkpoints/first", "restore its name, such as 000012"},
      {empty, "holds no checkpoint; give the folder of another run, or start without --resume"}};
  for (const auto& [from, expected] : cases)
    CHECK_THAT(runs.refused_resume(from), Contains(from + ": ") && Contains(expected));
  const fs::path before = fs::current_path();
  fs::current_path(empty);
  CHECK_THAT(runs.refusal({kBin + "/linear-regression", "--resume", "latest"}),
             Contains("no run of linear-regression in the folder runs has a checkpoint"));
  fs::current_path(before);
  CHECK_THAT(runs.refusal({kBin + "/linear-regression", "--resume", run, "--from",
                           runs.folder / "plan.toml"}),
             Contains("--from and --resume contradict each other"));
}

TEST_CASE("a folder in which a run trains is refused to a second run, and to resume") {
  const Runs runs;
  const std::string shared = runs.folder / "shared";
  const auto run_there = [&](const std::string& name, const Words& more) {
    return run_program(runs.command(name, "1", "20it", more));
  };
  for (const bool elsewhere : {false, true}) {
    const Words more = elsewhere ? Words{"--checkpoint-dir", shared} : Words{};
    const std::string name = elsewhere ? "first" : "run";
    const std::string checkpoints = elsewhere ? shared : runs.folder / "run/checkpoints";
    {
      const Training training(runs, name, more);
      CHECK(comes_true([&] { return fs::exists(checkpoints + "/000001/manifest.json"); }));
      const auto second = run_there(elsewhere ? "second" : "run", more);
      CHECK(second.code == 2);
      CHECK_THAT(second.err, Contains(checkpoints + ": another run writes into this folder"));
      CHECK_FALSE(fs::exists(runs.folder / "second"));
      const auto resumed = run_program({kBin + "/leeway", "resume", runs.folder / name});
      CHECK(resumed.code == 2);
      CHECK_THAT(resumed.err, Contains(checkpoints + ": another run writes into this folder"));
      const auto unwritten = run_program(
          {kBin + "/leeway", "resume", runs.folder / name, "--checkpoint-every", "none"});
      CHECK(unwritten.code == 2);
      const auto pruned =
          run_program({kBin + "/leeway", "checkpoints", checkpoints, "--prune", "1"});
      CHECK(pruned.code == 2);
      CHECK_THAT(pruned.err, Contains(": another run writes into this folder"));
    }
    CHECK_THAT(runs.refusal(runs.command("second", "1", "20it", {"--checkpoint-dir", checkpoints})),
               Contains(checkpoints + ": holds checkpoints of another run; continue that run with "
                                      "--resume"));
  }
}

TEST_CASE("a resumed run keeps its metrics, except an incomplete last line") {
  const Runs runs;
  const std::string run = runs.train("run"), metrics = run + "/metrics.jsonl";
  const std::string before = read_text(metrics);
  write_text(metrics, before + "{\"seconds\":0.3,\"chec");
  const auto resumed = run_program({kBin + "/leeway", "resume", run, "--epochs", "2", "--quiet"});
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == 0);
  const std::string after = read_text(metrics);
  CHECK(after.starts_with(before + "{\"resumed_from\":"));
  std::istringstream lines(after);
  for (std::string line; std::getline(lines, line);) CHECK(nlohmann::json::accept(line));
}

}  // namespace leeway::test
