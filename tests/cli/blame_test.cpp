// leeway blame, on runs of the command itself.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "monitoring/event_file.hpp"
#include "tests/cli/support.hpp"
#include "tests/support/process.hpp"

namespace leeway::cli {
namespace {

using Catch::Contains;

const std::string kBlame = std::string(LEEWAY_COMMAND) + " blame ";

/// The folder of a simulated run with --trace and a straggler.
class TracedFolder {
 public:
  explicit TracedFolder(const std::string& staleness = "bsp") {
    std::ofstream(root_ / "plan.toml") << R"(
name = "traced"
data.synthetic = {samples = 600, test_samples = 60, clusters = {classes = 4, features = 256}}
model = [{linear.outputs = 512}, "relu", {linear.outputs = 4}]
stop.epochs = 2
)";
    const Result run =
        run_line(concat(LEEWAY_COMMAND, " run ", root_ / "plan.toml",
                        " --workers 3 --shards 1 --batch 10 --staleness ", staleness,
                        " --simulate --world speed=0.01 --trace --slow 2:4x --out ", path()));
    INFO(run.output);
    REQUIRE(run.code == 0);
  }
  std::string path() const { return root_ / "run"; }

 private:
  test::TemporaryFolder root_;
};

}  // namespace

TEST_CASE("leeway blame prints the waits and the critical path of a run, also as JSON") {
  const TracedFolder folder;
  const Result text = run_line(kBlame + folder.path());
  CHECK(text.code == 0);
  CHECK_THAT(text.output, Contains("\nworker 2 ") && Contains("Critical path, ") &&
                              Contains("The largest share of the critical path is computing of "
                                       "worker 2: "));
  const auto json = nlohmann::json::parse(run_line(kBlame + folder.path() + " --json").output);
  CHECK(json.at("from_events") == true);
  double sum = 0;
  for (const auto& row : json.at("critical_path").at("rows"))
    sum += row.at("seconds").get<double>();
  CHECK(sum == Approx(json.at("critical_path").at("seconds").get<double>()));
  CHECK(json.at("critical_path").at("rows").at(0).at("activity") == "computing");
  CHECK(json.at("critical_path").at("rows").at(0).at("worker") == 2);
}

TEST_CASE(
    "leeway blame --remedies simulates the run without its straggler and with other settings") {
  const TracedFolder folder;
  const Result text = run_line(kBlame + folder.path() + " --remedies");
  CHECK(text.code == 0);
  CHECK_THAT(text.output, Contains("what would help") && Contains("as it ran (simulated)") &&
                              Contains("worker 2 as fast as the median") && Contains("ssp(4)") &&
                              Contains("--balance speed") && Contains("Largest gain: "));
  const auto json = nlohmann::json::parse(
      run_line(kBlame + folder.path() + " --remedies --gradients --json").output);
  const auto& rows = json.at("remedies");
  REQUIRE(rows.at(0).at("name") == "worker 2 as fast as the median");
  // The others wait for a worker that takes four times as long.
  CHECK(rows.at(0).at("gain") > 1.5);
  CHECK(rows.at(0).at("waiting") < 0.3);
  for (const auto& row : rows) CHECK(row.at("test_loss") > 0);
  CHECK_THAT(run_line(kBlame + folder.path() + " --gradients").output,
             Contains("give --remedies, too"));
}

TEST_CASE("leeway blame --remedies leaves out settings that the run cannot have") {
  for (const std::string staleness : {"auto", "3 --prefetch"}) {
    const TracedFolder folder(staleness);
    const Result text = run_line(kBlame + folder.path() + " --remedies");
    INFO(staleness << '\n' << text.output);
    CHECK(text.code == 0);
    CHECK_THAT(text.output, Contains("what would help") && !Contains("\n--prefetch"));
    CHECK((text.output.find("\nbsp ") == std::string::npos) == (staleness == "3 --prefetch"));
  }
}

TEST_CASE("leeway blame prints the waits of a run whose critical path cannot be found") {
  const TracedFolder folder;
  // As of a run that was interrupted in its first iteration: without the end of an iteration.
  EventFile events(folder.path() + "/events.bin", EventFile::IfSlow::wait);
  events.add(address_of(WorkerId(1)), {}, event::StepStarted{WorkerId(1), Iteration(0), 10, {}});
  events.finish();
  const Result text = run_line(kBlame + folder.path());
  CHECK(text.code == 0);
  CHECK_THAT(text.output,
             Contains("traced, 3 workers: computing ") && Contains("no critical path: ") &&
                 Contains("has no iteration that has ended") && !Contains("Critical path"));
  const Result json = run_line("(" + kBlame + folder.path() + " --json 2>/dev/null)");
  const auto parsed = nlohmann::json::parse(json.output);
  CHECK_FALSE(parsed.contains("critical_path"));
  CHECK_THAT(parsed.at("critical_path_error"), Contains("has no iteration that has ended"));
}

}  // namespace leeway::cli
