// The pages of real runs, live and recorded.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "dashboard/client.hpp"
#include "runtime/scenario.hpp"
#include "runtime/tools/recorded_page.hpp"
#include "runtime/words.hpp"
#include "tests/support/process.hpp"

namespace leeway {
namespace {

using Json = nlohmann::json;

Plan straggling_plan() {
  Plan plan;
  plan.name = "traced";
  plan.data = plan::Synthetic{4000, 100, plan::Clusters{4, 32, 4}};
  plan.model = {plan::Linear{64}, plan::Relu{}, plan::Linear{4}};
  plan.consistency = plan::Ssp{1};
  plan.workers = 4;
  plan.shards = 2;
  plan.batch = 10;
  plan.stop.epochs = 2;
  plan.stragglers = {slow(3, 4)};
  plan.simulated = plan::World{.speed = 0.01};
  return plan;
}

class RecordedRun {
 public:
  explicit RecordedRun(const Plan& plan, bool trace = true) {
    result = run(plan, {.folder = folder(), .quiet = true, .trace = trace});
    REQUIRE(result.ok());
    std::ifstream file(folder() + "/result.json");
    json = Json::parse(file);
  }
  std::string folder() const { return root_ / "run"; }
  Json state() const {
    const auto page = RecordedPage::load(folder());
    REQUIRE(page);
    return Json::parse((*page)->state(false));
  }

  Result result;
  Json json;

 private:
  test::TemporaryFolder root_;
};

double sum_of_waits(const Json& state) {
  double sum = 0;
  for (const Json& interval : state["intervals"]["list"])
    for (const Json& wait : interval["waits"]) sum += wait[2].get<double>();
  return sum;
}

}  // namespace

TEST_CASE("the page of a recorded run has the numbers of its result") {
  const RecordedRun run(straggling_plan());
  const Json state = run.state();
  CHECK(state["run"]["kind"] == "recorded");
  CHECK(state["run"]["policy"] == "ssp(1)");
  CHECK(state["bound"] == 1);
  CHECK(state["now"].get<double>() == Approx(run.json["seconds"].get<double>()));
  CHECK(state["totals"]["samples_per_second"].get<double>() ==
        Approx(run.json["samples_per_second"].get<double>()).epsilon(0.01));
  CHECK(state["totals"]["iterations"] == run.json["iterations"]);
  CHECK(state["totals"]["parked_pulls"] == run.json["parked_pulls"]);
  CHECK(state["totals"]["push_bytes"] == run.json["pushed_bytes"]);
  CHECK(state["totals"]["max_clock_gap"] == run.json["max_clock_gap"]);
  CHECK(state["totals"]["live_workers"] == 4);
  CHECK(state["test"].back()[2] == run.json["test_loss"]);
  CHECK(state["ended"]["reason"] == "finished");
  double compute = 0, wait = 0;
  for (const Json& worker : run.json["workers"]) {
    compute += worker["compute_seconds"].get<double>();
    wait += worker["wait_seconds"].get<double>();
  }
  CHECK(state["totals"]["compute"].get<double>() == Approx(compute).epsilon(0.01));
  CHECK(state["totals"]["wait"].get<double>() == Approx(wait).epsilon(0.01));
  CHECK(sum_of_waits(state) == Approx(wait).epsilon(0.01));
  std::uint64_t samples = 0;
  for (const Json& interval : state["intervals"]["list"])
    samples += interval["samples"].get<std::uint64_t>();
  CHECK(samples == run.json["samples_trained"]);
  CHECK(state["cause_names"][state["causes"][0]["cause"].get<std::size_t>()] == "worker 3");
}

TEST_CASE("the bytes of a recorded run belong to the intervals in which they were sent") {
  const RecordedRun run(straggling_plan());
  const Json intervals = run.state()["intervals"]["list"];
  for (const auto& [part, total] :
       {std::pair{"push_bytes", "pushed_bytes"}, {"pull_bytes", "pulled_bytes"}}) {
    std::uint64_t sum = 0;
    std::size_t with_bytes = 0;
    for (const Json& interval : intervals) {
      sum += interval[part].get<std::uint64_t>();
      with_bytes += interval[part] > 0;
    }
    CHECK(sum == run.json[total]);
    CHECK(with_bytes > intervals.size() / 2);
  }
}

TEST_CASE("the operations of a pipelined run sum to its computing and waiting times") {
  Plan plan = straggling_plan();
  plan.stragglers.clear();
  plan.model = {plan::Linear{64}, plan::Relu{}, plan::Linear{64}, plan::Relu{}, plan::Linear{4}};
  plan.pipeline.stages = 2;
  plan.micro_batches = 2;
  const RecordedRun run(plan);
  const Json state = run.state();
  double compute = 0, wait = 0;
  for (const Json& worker : run.json["workers"]) {
    compute += worker["compute_seconds"].get<double>();
    wait += worker["wait_seconds"].get<double>();
  }
  CHECK(state["totals"]["compute"].get<double>() == Approx(compute).epsilon(0.01));
  // A stage also waits after its last operation.
  CHECK(state["totals"]["wait"].get<double>() == Approx(wait).epsilon(0.05));
  CHECK(state["pipeline"]["slowness"].size() == 2);
  CHECK(!state["pipeline"]["operations"].empty());
}

TEST_CASE("a recorded page predicts the run without its worst straggler") {
  const RecordedRun run(straggling_plan());
  const auto page = RecordedPage::load(run.folder());
  REQUIRE(page);
  const auto text = (*page)->source().predict();
  REQUIRE(text);
  const Json predictions = Json::parse(*text);
  const Json& rows = predictions["rows"];
  REQUIRE(rows.size() >= 7);
  CHECK(rows[0]["name"] == "measured");
  CHECK(rows[0]["samples_per_second"] == run.json["samples_per_second"]);
  CHECK(rows[1]["name"] == "as it ran");
  CHECK(rows[1]["change"] == 0);
  CHECK(rows[2]["name"] == "worker 3 as fast as the median");
  CHECK(rows[2]["change"] > 1);
}

TEST_CASE("a recorded page predicts pipelines without the slow stage of one") {
  Plan plan = straggling_plan();
  plan.pipeline.stages = 2;
  plan.micro_batches = 2;
  const RecordedRun run(plan);
  CHECK(run.state()["run"]["can_predict"] == true);
  const auto page = RecordedPage::load(run.folder());
  REQUIRE(page);
  const auto text = (*page)->source().predict();
  INFO((text ? "" : text.error().text));
  REQUIRE(text);
  const Json rows = Json::parse(*text)["rows"];
  CHECK(rows[2]["name"] == "worker 3 as fast as the median");
  CHECK(rows[2]["change"] > 0.5);
}

TEST_CASE("without events, a recorded page has causes and curves") {
  const RecordedRun run(straggling_plan(), false);
  const Json state = run.state();
  CHECK(state["run"]["has_events"] == false);
  CHECK(state["run"]["can_predict"] == false);
  CHECK(state["cause_names"][state["causes"][0]["cause"].get<std::size_t>()] == "worker 3");
  CHECK(!state["test"].empty());
  CHECK(sum_of_waits(state) == 0);
  CHECK(state["totals"]["live_workers"] == 4);
  CHECK(state["sentences"]["alive"] == "4 of 4 workers were live at the end.");
}

TEST_CASE("a traced run that was killed is shown without a result") {
  const RecordedRun run(straggling_plan());
  const Json whole = run.state();
  std::filesystem::remove(run.folder() + "/result.json");
  const Json state = run.state();
  CHECK(state["ended"]["reason"] == "no result");
  CHECK(state["causes"] == whole["causes"]);
  CHECK(state["train"] == whole["train"]);
  CHECK(state["totals"]["max_clock_gap"] == whole["totals"]["max_clock_gap"]);
  CHECK(state["bound"] == 1);
}

TEST_CASE("a run is shown and stopped through its page") {
  Plan plan = straggling_plan();
  plan.simulated.reset();
  plan.stop.epochs = 1e6;
  std::string address;
  {
    // A free port; the run takes it a moment later.
    const auto server = dashboard::Server::open(
        {}, {.state = [](auto) { return dashboard::Feed::State(); }, .stop = {}, .predict = {}});
    REQUIRE(server);
    address = (*server)->url().substr(std::string("http://").size());
    address.pop_back();
  }
  Result result;
  std::thread running([&] { result = run(plan, {.quiet = true, .serve = address}); });
  Json state;
  for (int i = 0; i < 600; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto text = dashboard::fetch_state(address, "");
    if (!text) continue;
    state = Json::parse(*text);
    if (state["totals"]["iterations"] > 0 && !state["causes"].empty()) break;
  }
  CHECK(dashboard::request_stop(address, ""));
  running.join();
  CHECK(state["run"]["kind"] == "threads");
  CHECK(state["run"]["can_stop"] == true);
  CHECK(state["totals"]["lost_events"] == 0);
  CHECK(result.totals.end.reason == msg::RunEnded::Reason::interrupted);
}

}  // namespace leeway
