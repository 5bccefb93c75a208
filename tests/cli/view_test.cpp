// leeway compare and leeway view, on runs of the command itself.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/text.hpp"
#include "tests/cli/support.hpp"
#include "tests/support/process.hpp"

namespace leeway::cli {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

/// Runs below one folder.
class Runs {
 public:
  Runs() {
    std::ofstream(root_ / "plan.toml") << R"(
name = "compared"
data.synthetic = {samples = 600, test_samples = 60, clusters = {classes = 4, features = 16}}
model = [{linear.outputs = 16}, "relu", {linear.outputs = 4}]
stop.epochs = 2
)";
  }
  std::string path(const std::string& name) const { return root_ / name; }
  /// Makes a simulated run.
  void make(const std::string& name, const std::string& flags) const {
    const Result run = run_line(concat(LEEWAY_COMMAND, " run ", root_ / "plan.toml",
                                       " --workers 3 --shards 1 --batch 10 --simulate ", flags,
                                       " --out ", path(name)));
    INFO(run.output);
    REQUIRE(run.code == 0);
  }
  Result compare(const std::string& arguments) const {
    return run_line(concat("cd ", root_ / "", " && ", LEEWAY_COMMAND, " compare ", arguments));
  }
  Json result(const std::string& name) const {
    std::ifstream file(path(name) + "/result.json");
    return Json::parse(file);
  }

 private:
  test::TemporaryFolder root_;
};

}  // namespace

TEST_CASE("leeway compare lists the figures of runs, and only the settings that differ") {
  const Runs runs;
  runs.make("first", "--staleness bsp --slow 2:4x");
  runs.make("second", "--staleness 2 --slow 2:4x");
  const Result text = runs.compare("first second/");
  CHECK(text.code == 0);
  CHECK_THAT(text.output, Contains("first") && Contains("second") && Contains("samples/s") &&
                              Contains("waiting, of all time") && Contains("test accuracy") &&
                              Contains("Settings that differ:") && Contains("consistency"));
  for (const char* same : {"batch", "stragglers", "seed"})
    CHECK_THAT(text.output, !Contains(concat("\n", same)));
  const Json json = Json::parse(runs.compare("first second --json").output);
  CHECK(json.at("runs") == Json{"first", "second"});
  for (std::size_t i = 0; i < 2; ++i) {
    const Json result = runs.result(json["runs"][i]);
    const Json& shown = json.at("results").at(i);
    for (const char* key : {"samples_per_second", "parked_pulls", "pushed_bytes", "test_loss"})
      CHECK(shown.at(key) == result.at(key));
    CHECK_FALSE(shown.contains("workers"));
    double wait = 0, all = 0;
    for (const Json& worker : result["workers"]) {
      wait += worker["wait_seconds"].get<double>();
      all += worker["wait_seconds"].get<double>() + worker["compute_seconds"].get<double>();
    }
    CHECK(shown.at("waiting").get<double>() == Approx(wait / all));
  }
  for (const auto& [key, values] : json.at("settings").items()) {
    CHECK_THAT(key, Catch::StartsWith("consistency"));
    CHECK(values.at(0) != values.at(1));
  }
}

TEST_CASE("leeway compare draws the curves of equal plans over each other") {
  const Runs runs;
  runs.make("a", "");
  runs.make("b", "");
  const Result text = runs.compare("a b --out curves.svg");
  CHECK(text.code == 0);
  CHECK_THAT(text.output, Contains("The plans are equal.") && Contains("curves: curves.svg") &&
                              Contains("(+0.0%)"));
  const std::string svg = test::read_text(runs.path("curves.svg"));
  for (const char* part : {"<svg", "test loss", "training loss", "test accuracy, %", ">a<", ">b<"})
    CHECK_THAT(svg, Contains(part));
}

TEST_CASE("leeway compare refuses what it cannot compare, and says why") {
  const Runs runs;
  runs.make("a", "");
  const auto refuses = [&](const std::string& arguments, const std::string& text) {
    const Result result = runs.compare(arguments);
    CHECK(result.code == 2);
    CHECK_THAT(result.output, Contains(text));
  };
  refuses("a", "give the folders of two or more runs");
  refuses("a a --out curves.png", "give curves.svg");
  refuses("a missing", "missing/result.json");
  std::filesystem::remove(runs.path("a") + "/plan.json");
  refuses("a a", "plan.json\" is missing");
}

TEST_CASE("Ctrl-C ends leeway view although a prediction does not end") {
  const Runs runs;
  runs.make("a", "--trace");
  test::Process view({LEEWAY_COMMAND, "view", runs.path("a")});
  std::string port;
  for (int i = 0; i < 200 && port.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::string text = view.out(), mark = "page: http://127.0.0.1:";
    const auto at = text.find(mark), end = text.find("/\n", std::min(at, text.size()));
    if (end != std::string::npos) port = text.substr(at + mark.size(), end - at - mark.size());
  }
  REQUIRE_FALSE(port.empty());
  // The prediction waits for the result, which no process writes.
  const std::string result = runs.path("a") + "/result.json";
  std::filesystem::remove(result);
  REQUIRE(::mkfifo(result.c_str(), 0600) == 0);
  const std::vector<std::string> request{
      "/bin/bash", "-c",
      concat("exec 3<>/dev/tcp/127.0.0.1/", port,
             "; printf 'GET /predict HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' >&3; head -1 <&3")};
  test::Process first(request);
  bool is_computed = false;
  for (int i = 0; i < 100 && !is_computed; ++i) {
    // A second prediction is refused while the first one is computed.
    test::Process second(request);
    (void)second.wait_up_to(std::chrono::milliseconds(500));
    is_computed = second.out().find("503") != std::string::npos;
  }
  CHECK(is_computed);
  view.signal(SIGINT);
  CHECK(view.wait_up_to(std::chrono::seconds(10)) == 130);
}

}  // namespace leeway::cli
