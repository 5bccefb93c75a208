// The pages of real runs, live and recorded.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/descriptor.hpp"
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

/// Trains on threads until it is stopped.
Plan endless_plan() {
  Plan plan = straggling_plan();
  plan.simulated.reset();
  plan.stop.epochs = 1e6;
  return plan;
}

/// Of the loopback interface, with a free port, which a run takes a moment later.
std::string free_address() {
  const auto server = dashboard::Server::open(
      {}, {.state = [](auto) { return dashboard::Feed::State(); }, .stop = {}, .predict = {}});
  REQUIRE(server);
  std::string address = (*server)->url().substr(std::string("http://").size());
  address.pop_back();
  return address;
}

/// Samples of a run so far, by its metrics.
std::uint64_t samples_in(const std::string& folder) {
  std::ifstream file(folder + "/metrics.jsonl");
  std::uint64_t samples = 0;
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (line.is_object() && line.contains("samples")) samples = line["samples"];
  }
  return samples;
}

/// Connections to an address that send nothing.
std::vector<std::unique_ptr<Descriptor>> silent_connections(const std::string& address,
                                                            std::size_t count) {
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<std::unique_ptr<Descriptor>> sockets;
  while (sockets.size() < count) {
    auto socket = std::make_unique<Descriptor>(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    if (socket->get() < 0) break;
    (void)!::connect(socket->get(), reinterpret_cast<const sockaddr*>(&target), sizeof target);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

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

TEST_CASE("the page of a recorded run has the reasons of evictions and failures") {
  Plan plan = straggling_plan();
  plan.faults = {{address_of(WorkerId(1)), std::int64_t{20}, 0, plan::Crash{}}};
  for (const bool trace : {true, false}) {
    const RecordedRun run(plan, trace);
    std::ofstream(run.folder() + "/metrics.jsonl", std::ios::app)
        << R"({"seconds":0.01,"checkpoint":7,"error":"/disk/7: cannot be written"})" << '\n'
        << R"({"seconds":0.02,"samples_trained":9,"error":"no memory"})" << '\n';
    std::vector<std::string> texts;
    const Json state = run.state();
    for (const Json& mark : state["marks"]) texts.push_back(mark["text"]);
    REQUIRE(texts.size() == 4);
    CHECK(std::ranges::count(texts, "checkpoint 7 was not written: 7: cannot be written") == 1);
    CHECK(std::ranges::count(texts, "evaluation failed: no memory") == 1);
    CHECK(std::ranges::count_if(texts, [](const std::string& text) {
            return text.starts_with("worker 1 was evicted: ");
          }) == 1);
    CHECK(std::ranges::is_sorted(state["marks"], {},
                                 [](const Json& mark) { return mark["seconds"].get<double>(); }));
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
  CHECK(state["totals"]["stage_bytes"] > 0);
  CHECK(state["totals"]["stage_bytes"] == run.json["stage_bytes"]);
  CHECK(state["totals"]["peak_memory_bytes"] > 1'000'000);
  std::uint64_t between = 0;
  for (const Json& interval : state["intervals"]["list"])
    between += interval["stage_bytes"].get<std::uint64_t>();
  CHECK(between == run.json["stage_bytes"]);
  CHECK(!state["pipeline"]["operations"].empty());
}

TEST_CASE("a recorded page has the operations of any time") {
  Plan plan = straggling_plan();
  plan.stragglers.clear();
  plan.model = {plan::Linear{64}, plan::Relu{}, plan::Linear{64}, plan::Relu{}, plan::Linear{4}};
  plan.pipeline.stages = 2;
  plan.micro_batches = 2;
  const RecordedRun run(plan);
  const auto page = RecordedPage::load(run.folder());
  REQUIRE(page);
  const Json state = Json::parse((*page)->state(false));
  CHECK(state["run"]["keeps_operations"] == true);
  const double end = state["now"], oldest = state["pipeline"]["operations"][0][5];
  REQUIRE(oldest > 0.1 * end);
  const auto source = (*page)->source();
  const auto begin = source.operations({.from = 0, .until = oldest / 2, .first = 1, .workers = 2});
  REQUIRE(begin);
  const Json operations = Json::parse(*begin);
  REQUIRE(operations.size() > 10);
  CHECK(operations[0][4] == 0);  // iteration
  for (const Json& operation : operations) {
    CHECK((operation[0] == 1 || operation[0] == 2));
    CHECK(operation[6] <= oldest / 2);
  }
  const auto all = source.operations({.from = oldest, .until = end, .first = 0, .workers = 4});
  REQUIRE(all);
  CHECK(Json::parse(*all).back() == state["pipeline"]["operations"].back());
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
  plan.stragglers = {slow(2, 4)};  // the stage that computes most, of the second pipeline
  const RecordedRun run(plan);
  CHECK(run.state()["run"]["can_predict"] == true);
  const auto page = RecordedPage::load(run.folder());
  REQUIRE(page);
  const auto text = (*page)->source().predict();
  INFO((text ? "" : text.error().text));
  REQUIRE(text);
  const Json rows = Json::parse(*text)["rows"];
  CHECK(rows[2]["name"] == "worker 2 as fast as the median");
  CHECK(rows[2]["change"] > 0.5);
}

TEST_CASE("a prediction that failed is computed again, and one that succeeded is kept") {
  const RecordedRun run(straggling_plan());
  const auto page = RecordedPage::load(run.folder());
  REQUIRE(page);
  const auto source = (*page)->source();
  const std::string result = run.folder() + "/result.json";
  std::filesystem::rename(result, result + ".away");
  CHECK_FALSE(source.predict());
  std::filesystem::rename(result + ".away", result);
  const auto predicted = source.predict();
  REQUIRE(predicted);
  std::filesystem::remove(result);
  CHECK(*source.predict() == *predicted);
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
  const std::string address = free_address();
  Result result;
  std::thread running([&] { result = run(endless_plan(), {.quiet = true, .serve = address}); });
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

TEST_CASE("a run trains while its page has 10,000 connections, and is stopped through it later") {
  constexpr std::size_t kConnections = 10'000, kOthers = 500;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit raised = before;
  raised.rlim_cur = std::min<rlim_t>(before.rlim_max, kConnections + kOthers);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &raised) == 0);
  const std::size_t count = std::min<std::size_t>(kConnections, raised.rlim_cur - kOthers);
  if (count < kConnections) WARN("the limit of open files allows " << count << " connections");
  const test::TemporaryFolder root;
  const std::string folder = root / "run", address = free_address();
  Result result;
  std::thread running(
      [&] { result = run(endless_plan(), {.folder = folder, .quiet = true, .serve = address}); });
  const auto trains_beyond = [&](std::uint64_t samples) {
    for (int i = 0; i < 600; ++i) {
      if (samples_in(folder) > samples) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  };
  CHECK(trains_beyond(0));
  {
    const auto sockets = silent_connections(address, count);
    CHECK(sockets.size() == count);
    for (int line = 0; line < 3; ++line) CHECK(trains_beyond(samples_in(folder)));
  }
  bool stopped = false;
  for (int i = 0; i < 100 && !stopped; ++i) {
    stopped = bool(dashboard::request_stop(address, ""));
    if (!stopped) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(stopped);
  running.join();
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(result.totals.end.reason == msg::RunEnded::Reason::interrupted);
}

}  // namespace leeway
