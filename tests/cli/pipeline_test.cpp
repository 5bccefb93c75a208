#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/support.hpp"

using namespace leeway::cli;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

Result schedule(const std::string& arguments) {
  return run_line("COLUMNS=100 " LEEWAY_COMMAND " schedule " + arguments);
}

Result partition(const std::string& arguments) {
  return run_line(LEEWAY_COMMAND " partition " + arguments);
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// A temporary folder.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "leeway-pipeline-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    root_ = name;
  }
  ~Folder() { fs::remove_all(root_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const std::string& name) const { return root_ / name; }

 private:
  fs::path root_;
};

void check_refused(const Result& result, const std::string& text) {
  INFO(result.output);
  CHECK(result.code == 2);
  CHECK_THAT(result.output, Contains(text));
}

}  // namespace

TEST_CASE("leeway schedule lists the schedules with their papers") {
  const Result result = schedule("");
  CHECK(result.code == 0);
  for (const char* text :
       {"gpipe ", "1f1b ", "interleaved ", "zb_h1 ", "interleaved_zb ", "zb_v ", "dualpipe_v ",
        "weight_stashing ", "2bw ", "(GPipe, Huang et al., NeurIPS 2019)"})
    CHECK_THAT(result.output, Contains(text));
}

TEST_CASE("leeway schedule shows a table, its bubble, the theory, and the memory of stages") {
  const Result result = schedule("1f1b --stages 4 --micro-batches 8");
  CHECK(result.code == 0);
  CHECK_THAT(result.output,
             Contains("1f1b: 4 stages, 8 micro-batches\n") &&
                 Contains("stage 3  .........F0 B0    F1 B1    ") &&
                 Contains("bubble 27.27% of it; in theory 3/11 = 27.27%.") &&
                 Contains("    0            4         1                  0     9\n") &&
                 Contains("    3            1         1                  0     9\n") &&
                 !Contains("\x1b"));
  const Result stashing = schedule("weight_stashing --stages 3 --micro-batches 1 --updates 9");
  CHECK_THAT(stashing.output, Contains("    0            3         3                  2     6\n") &&
                                  Contains("F8v6") && Contains("less with more updates"));
  CHECK_THAT(schedule("2bw --stages 2 --micro-batches 3 --updates 1").output,
             Contains("3 micro-batches per update, 1 update\n"));
}

TEST_CASE("leeway schedule uses the given costs") {
  CHECK_THAT(schedule("zb_h1 --forward 4 --backward-input 5 --backward-weight 3").output,
             Contains("in theory 18/114 = 15.79%."));
  CHECK_THAT(schedule("zb_h1 --backward-weight 3").output,
             Contains("; in theory no closed form for these sizes"));
  CHECK_THAT(schedule("gpipe --stages 2 --micro-batches 2 --communication 5").output,
             Contains("Time 19, ") && Contains("without the time of messages and updates"));
  CHECK_THAT(schedule("1f1b --update 2").output, Contains("U7 "));
}

TEST_CASE("leeway schedule uses colours in a terminal unless NO_COLOR is set") {
  const std::string in_terminal = "script -qec '" LEEWAY_COMMAND " schedule 1f1b' /dev/null";
  CHECK_THAT(run_line("env -u NO_COLOR " + in_terminal).output, Contains("\x1b[30;48;5;75mF0"));
  CHECK_THAT(run_line("NO_COLOR=1 " + in_terminal).output,
             Contains("stage 0  F0 F1") && !Contains("\x1b[30"));
}

TEST_CASE("leeway schedule writes an SVG picture") {
  const Folder folder;
  const std::string file = (folder / "picture.svg").string();
  const Result result = schedule("interleaved --chunks 3 --svg " + file);
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Contains("Picture: " + file));
  CHECK_THAT(text_of(file),
             Contains("<svg ") && Contains(">F7c<") && Contains(">B0c<") &&
                 Contains(">interleaved: 4 stages, 3 chunks each, 8 micro-batches<"));
  const Result nowhere = schedule("1f1b --svg " + (folder / "missing/x.svg").string());
  CHECK(nowhere.code == 1);
  CHECK_THAT(nowhere.output, Contains("No such file or directory; check the folder"));
}

TEST_CASE("leeway schedule prints only figures if the picture would be too large") {
  const Result result = schedule("1f1b --stages 16 --micro-batches 2000");
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Contains("64,016 operations") && Contains("in theory 15/2015"));
  CHECK(schedule("1f1b --stages 16 --micro-batches 2000 --svg /dev/null").code == 2);
}

TEST_CASE("leeway schedule refuses invalid options and suggests valid ones") {
  const auto refused = [](const std::string& arguments, const std::string& text) {
    check_refused(schedule(arguments), text);
  };
  refused("interleaved --micro-batches 9", "give --micro-batches 8 or 10");
  refused("wavefront", "there is no schedule \"wavefront\"; known are gpipe");
  refused("1f1b --chunks 2", "give --chunks 1, or the schedule interleaved");
  refused("1f1b --stages 0", "give --stages 1 to 1024");
  refused("1f1b --stages many", "leeway: --stages: \"many\" is not allowed; give 1 to 1024\n");
  refused("--svg x.svg", "--svg needs a schedule; give its name");
  refused("--stages 3", "--stages needs a schedule; give its name");
  refused("2bw --stages 4 --micro-batches 1", "2bw: 1 micro-batch per update is");
  refused("1f1b --forward -1", "--forward: -1 is not allowed");
  refused("1f1b --forward 0 --backward-input 0 --backward-weight 0", "give one of them 1");
  refused("1f1b 2bw", "2bw");
  const Result help = schedule("--help");
  CHECK(help.code == 0);
  CHECK_THAT(help.output, Contains("--micro-batches") && Contains("--communication"));
}

TEST_CASE("leeway partition shows a split, its bottleneck, and the memory of stages") {
  const Result result = partition("small_resnet --stages 4");
  INFO(result.output);
  CHECK(result.code == 0);
  CHECK_THAT(result.output,
             Contains("small_resnet in micro-batches of 8 samples, on 4 stages.\n") &&
                 Contains("estimated from shapes, at 50 GFLOP/s and 20 GB/s; links have 10") &&
                 Contains("3 residual") && Contains("| split\n") && Contains("100.00%") &&
                 Contains("set by stage 2, forward and backward of layers 7-9.") &&
                 Contains("with 1f1b takes") && Contains("bubble ") &&
                 Contains("The split: --split 0-3,4-6,7-9,10-17\n"));
}

TEST_CASE("leeway partition accepts speeds, links, schedules and splits") {
  CHECK_THAT(partition("mlp --speeds 1,1000").output,
             Contains("The split: --split 0,1-5\n") && Contains("1000.000"));
  CHECK_THAT(partition("mlp --split flatten-2,3-5").output, Contains("--split 0-2,3-5\n"));
  CHECK_THAT(partition("vgg_like --world link=0.001").output,
             Contains("set by the link after layer") && Contains("links have 0.001 Gbit/s"));
  const auto with = [](const std::string& schedule) {
    return partition("mlp --split 0-2,3-5 --schedule " + schedule).output;
  };
  CHECK_THAT(with("1f1b"), Contains("83.2 kB"));    // activations of two micro-batches
  CHECK_THAT(with("gpipe"), Contains("332.8 kB"));  // of eight
  const Result chunks = partition("small_resnet --schedule interleaved --chunks 3");
  CHECK(chunks.code == 0);
  CHECK_THAT(chunks.output, Contains("with interleaved takes") && Contains("of all its chunks.\n"));
}

TEST_CASE("leeway partition reads plans and their data, and measures layers") {
  const Folder folder;
  const fs::path file = folder / "plan.toml";
  std::ofstream(file) << "name = \"mine\"\nbatch = 24\n"
                         "data.synthetic = { samples = 100, test_samples = 10, "
                         "clusters = { classes = 3, features = 20 } }\n"
                         "model = [{ linear.outputs = 64 }, \"relu\", { linear.outputs = 3 }]\n"
                         "optimizer.adam = {}\n";
  const Result result = partition(file.string() + " --measure --micro-batches 4");
  INFO(result.output);
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Contains("mine in micro-batches of 6 samples, on 2 stages.") &&
                                Contains("measured on one core of this machine") &&
                                Contains("2 linear"));
  CHECK_THAT(partition("mlp --measure").output, Contains("measured on one core"));
  std::ofstream(folder / "text.toml") << "name = \"text\"\nbatch = 8\ndata.text.context = 16\n"
                                         "model = [{ embedding.features = 8 }, \"unembedding\"]\n";
  CHECK_THAT(partition((folder / "text.toml").string() + " --measure").output,
             Contains("measured on one core"));
}

TEST_CASE("leeway partition takes the stages from the plan unless a flag overrides them") {
  const Folder folder;
  const fs::path file = folder / "plan.toml";
  std::ofstream(file) << "name = \"mine\"\nbatch = 24\nmicro_batches = 6\nworkers = 6\n"
                         "data.synthetic = { samples = 100, test_samples = 10, "
                         "clusters = { classes = 3, features = 20 } }\n"
                         "model = [{ linear.outputs = 64 }, \"relu\", { linear.outputs = 64 }, "
                         "\"relu\", { linear.outputs = 3 }]\n"
                         "pipeline = { stages = 3, schedule = \"fill_drain\", "
                         "split = \"0-2,3,4\" }\n";
  const auto shown = [&](const std::string& flags, const std::string& more = "") {
    std::ofstream(file, std::ios::app) << more;
    const Result result = partition(file.string() + flags);
    INFO(result.output);
    CHECK(result.code == 0);
    return result.output;
  };
  CHECK_THAT(shown(""), Contains("the schedule fill_drain is now called gpipe\n") &&
                            Contains("mine in micro-batches of 4 samples, on 3 stages.\n") &&
                            Contains("An update of 6 micro-batches with gpipe takes") &&
                            Contains("The split: --split 0-2,3,4\n"));
  CHECK_THAT(shown(" --split none"), Contains("on 3 stages") && !Contains("--split 0-2,3,4\n"));
  CHECK_THAT(shown(" --split 0,1-3,4"), Contains("The split: --split 0,1-3,4\n"));
  CHECK_THAT(shown(" --micro-batches 3 --schedule 1f1b"),
             Contains("micro-batches of 8 samples") && Contains("3 micro-batches with 1f1b") &&
                 Contains("--split 0-2,3,4\n"));
  // The error names the source of an invalid split.
  std::ofstream(folder / "wrong.toml")
      << text_of(file).replace(text_of(file).find("0-2,3,4"), 7, "0-1,3,4");
  const std::string wrong = (folder / "wrong.toml").string();
  check_refused(partition(wrong), "leeway: pipeline.split: ");
  check_refused(partition(file.string() + " --split 0-1,3,4"), "leeway: --split: ");
  // With another number of stages or chunks, the plan's split is ignored.
  CHECK_THAT(shown(" --stages 2"), Contains("on 2 stages") && Contains("with gpipe takes"));
  CHECK_THAT(shown(" --speeds 1,2,3,4"), Contains("on 4 stages"));
  CHECK_THAT(shown(" --stages 2 --schedule interleaved"), Contains("of all its chunks.\n"));
  CHECK_THAT(shown(""), !Contains("by speed"));
  CHECK_THAT(shown("", "balance = \"by_speed\"\n"),
             Contains("mine in micro-batches of 4 samples, on 3 stages.\n"
                      "With batches by speed, micro-batches have up to 32 samples; memory is for "
                      "the largest.\n"));
}

TEST_CASE("leeway partition accepts scenarios, but not their custom layers and data") {
  const Folder folder;
  fs::create_directories(folder / "bin");
  const fs::path manifests = folder / "share/leeway/scenarios";
  fs::create_directories(manifests);
  const auto scenario = [&](const std::string& name, const std::string& layer) {
    std::ofstream(manifests / (name + ".json"))
        << R"({"name": ")" << name << R"(", "summary": "", "description": "", "plan": {"name": ")"
        << name << R"(", "model": [)" << layer << R"(, {"linear": {"outputs": 3}}], "data": )"
        << R"({"synthetic": {"samples": 9, "test_samples": 3, "clusters": {"classes": 3}}}}})";
    return run_line("PATH=" + (folder / "bin").string() + ":$PATH " LEEWAY_COMMAND " partition " +
                    name);
  };
  const Result known = scenario("usual", R"({"linear": {"outputs": 40}})");
  INFO(known.output);
  CHECK(known.code == 0);
  CHECK_THAT(known.output, Contains("usual in micro-batches") && Contains("--split 0,1\n"));
  const Result own = scenario("own", R"({"custom": {"name": "mine", "arguments": ""}})");
  CHECK(own.code == 2);
  CHECK_THAT(own.output, Contains("\"mine\"") && Contains("knows only built-in layers and data"));
}

TEST_CASE("leeway partition refuses invalid options and suggests valid ones") {
  const auto refused = [](const std::string& arguments, const std::string& text) {
    check_refused(partition(arguments), text);
  };
  refused("", "MODEL is required");
  refused("mpl", "or model \"mpl\"; did you mean \"mlp\"?");
  refused("mlp --stages 9", "can be split into 6 pieces; give --stages 6");
  refused("mlp --stages 0", "give --stages 1 to 1024");
  refused("mlp --memory 1MB", "needs ");
  refused("mlp --memory 1MB", "no other split fits; give --memory 4");
  refused("mlp --memory some", "is not a size");
  refused("mlp --speeds 1,2,3 --stages 2", "3 values for 2 stages");
  refused("mlp --split 0-1,3-5", "layer 2 is in no chunk");
  refused("mlp --stages 3 --split 0-1,2-5", "2 chunks");
  refused("mlp --schedule 1f2b", "did you mean \"1f1b\"?");
  refused("mlp --schedule interleaved --micro-batches 7", "give --micro-batches 6 or 8");
  refused("mlp --micro-batches 65",
          "micro_batches: 65 is not allowed; give --micro-batches 1 to 64");
  refused("mlp --world speed=0", "--world");
  refused("missing.toml", "missing.toml");
  CHECK(partition("--help").code == 0);
}

TEST_CASE("the pictures in docs/pipelines.md are up to date") {
  std::istringstream lines(text_of(LEEWAY_SOURCE "/docs/pipelines.md"));
  const std::string command = "    leeway schedule ", stage = "    stage ";
  std::string output;
  int pictures = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(command)) {
      // Drops comments and --svg.
      const std::string shown = line.substr(0, std::min(line.find('#'), line.find(" --svg")));
      const Result result =
          run_line("COLUMNS=160 " LEEWAY_COMMAND + shown.substr(shown.find(" schedule ")));
      INFO(line);
      CHECK(result.code == 0);
      output = result.output;
    } else if (line.starts_with(stage)) {
      ++pictures;
      CHECK_THAT(output, Contains(line.substr(4) + '\n'));
    }
  }
  CHECK(pictures == 23);
}
