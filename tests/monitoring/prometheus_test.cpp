// The metrics that a run serves to Prometheus, scraped over a socket.
#include "monitoring/prometheus.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "core/text.hpp"
#include "tests/support/process.hpp"
#include "tests/support/tiny.hpp"

using namespace leeway;
using namespace leeway::test;
using Catch::Contains;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The answer to a GET request at a port of 127.0.0.1, with its header.
std::string get(int port, const std::string& path = "/metrics") {
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = concat("GET ", path, " HTTP/1.0\r\nHost: localhost\r\n\r\n");
    CHECK(::send(connection, request.data(), request.size(), MSG_NOSIGNAL) > 0);
    char bytes[4096];
    for (::ssize_t got = 1; (got = ::recv(connection, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(got));
  }
  ::close(connection);
  return answer;
}

int port_of(const PrometheusExporter& exporter) {
  return std::stoi(exporter.url().substr(exporter.url().rfind(':') + 1));
}

/// Values by name and labels: "leeway_wait_seconds_total{worker=\"1\"}".
std::map<std::string, double> values_of(const std::string& text) {
  std::map<std::string, double> values;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.rfind(' ');
    if (space != std::string::npos) values[line.substr(0, space)] = std::atof(&line[space + 1]);
  }
  return values;
}

/// A run's exporter at a free port.
class ExportedRun {
 public:
  explicit ExportedRun(const Plan& plan = tiny_plan()) {
    const auto job = job_of(plan);
    auto opened = PrometheusExporter::open("0", *job);
    REQUIRE(opened);
    exporter = std::move(*opened);
  }
  std::string text() const { return get(port_of(*exporter)); }
  std::map<std::string, double> values() const { return values_of(text()); }
  void iteration(std::uint32_t worker, Instant at, Duration waited, Duration computed) {
    const WorkerId id(worker);
    exporter->event(address_of(id), at, event::StepStarted{id, Iteration(7), 2, waited});
    exporter->event(address_of(id), at + computed, event::StepFinished{id, Iteration(7), 2});
  }

  std::unique_ptr<PrometheusExporter> exporter;
};

Progress some_progress() {
  return {.now = Instant{} + seconds(3),
          .epoch = Epoch(2),
          .iterations = 40,
          .samples = 90,
          .samples_trained = 80,
          .partial_pushes = 1,
          .live_workers = 3,
          .train_loss = 0.5,
          .train_accuracy = 0.75,
          .clock_gap = 2,
          .parked_now = 1,
          .parked_pulls = 12,
          .push_bytes = 1000,
          .plain_push_bytes = 4000,
          .pull_bytes = 500,
          .plain_pull_bytes = 500,
          .stage_bytes = 30,
          .plain_stage_bytes = 60,
          .malformed = 4,
          .refused = 5};
}

/// An exporter of a run in which everything has happened once, so that each metric has a value.
ExportedRun full_run() {
  Plan plan = tiny_plan();
  plan.replicas = 2;
  ExportedRun run(plan);
  run.exporter->progress(some_progress());
  run.exporter->evaluated({.loss = 0.25, .accuracy = 0.875});
  run.exporter->evaluated({.loss = kNan, .accuracy = kNan, .error = "no memory"});
  run.exporter->checkpointed({.number = 1});
  run.exporter->checkpointed({.number = 2, .error = "disk full"});
  run.exporter->evicted(WorkerId(1), {});
  run.exporter->came_back(WorkerId(1));
  run.exporter->replicas_changed({ShardId(0), msg::ReplicasChanged::Change::primary_lost, ""});
  run.exporter->replicas_changed({ShardId(0), msg::ReplicasChanged::Change::took_over, ""});
  return run;
}

/// The names after "# TYPE", without those of the server itself.
std::set<std::string> families_of(const std::string& text) {
  static const std::regex type("# TYPE ((leeway|process)_[a-z_]+) (counter|gauge|histogram)\n");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), type), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

std::set<std::string> names_in(const std::string& text) {
  static const std::regex name("\\b(leeway_[a-z_]+[a-z]|process_[a-z_]+[a-z])\\b");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

std::string refusal(const std::string& address) {
  const auto job = job_of(tiny_plan());
  const auto opened = PrometheusExporter::open(address, *job);
  return opened ? "" : opened.error().text;
}

}  // namespace

TEST_CASE("a scrape has the reports of the monitor") {
  const ExportedRun run = full_run();
  const std::string text = run.text();
  CHECK_THAT(text, Contains("HTTP/1.1 200 OK") &&
                       Contains("# HELP leeway_iterations_total Iterations that ") &&
                       Contains("# TYPE leeway_iterations_total counter\n") &&
                       Contains("# TYPE leeway_live_workers gauge\n") &&
                       Contains("# TYPE leeway_iteration_seconds histogram\n"));
  auto values = values_of(text);
  CHECK(values["leeway_run_seconds"] == 3);
  CHECK(values["leeway_epoch"] == 2);
  CHECK(values["leeway_iterations_total"] == 40);
  CHECK(values["leeway_samples_total"] == 90);
  CHECK(values["leeway_trained_samples_total"] == 80);
  CHECK(values["leeway_partial_pushes_total"] == 1);
  CHECK(values["leeway_live_workers"] == 3);
  CHECK(values["leeway_planned_workers"] == 3);
  CHECK(values["leeway_staleness_bound_iterations"] == 1);
  CHECK(values["leeway_train_loss"] == 0.5);
  CHECK(values["leeway_train_accuracy_ratio"] == 0.75);
  CHECK(values["leeway_test_loss"] == 0.25);
  CHECK(values["leeway_test_accuracy_ratio"] == 0.875);
  CHECK(values["leeway_clock_gap_iterations"] == 2);
  CHECK(values["leeway_parked_pulls"] == 1);
  CHECK(values["leeway_pulls_parked_total"] == 12);
  CHECK(values["leeway_pushed_bytes_total{encoded=\"true\"}"] == 1000);
  CHECK(values["leeway_pushed_bytes_total{encoded=\"false\"}"] == 4000);
  CHECK(values["leeway_pulled_bytes_total{encoded=\"true\"}"] == 500);
  CHECK(values["leeway_stage_bytes_total{encoded=\"true\"}"] == 30);
  CHECK(values["leeway_stage_bytes_total{encoded=\"false\"}"] == 60);
  CHECK(values["leeway_malformed_messages_total"] == 4);
  CHECK(values["leeway_refused_messages_total"] == 5);
  CHECK(values["leeway_evictions_total"] == 1);
  CHECK(values["leeway_rejoins_total"] == 1);
  CHECK(values["leeway_checkpoints_written_total"] == 1);
  CHECK(values["leeway_checkpoints_failed_total"] == 1);
  CHECK(values["leeway_last_checkpoint_timestamp_seconds"] > 1.6e9);
  CHECK(values["leeway_replicas_lost_total"] == 1);
  CHECK(values["leeway_takeovers_total"] == 1);
  CHECK(values["process_resident_memory_bytes"] > 1e6);
  CHECK(values["process_cpu_seconds_total"] > 0);
}

TEST_CASE("run_info describes the run, and its name is escaped") {
  Plan plan = tiny_plan();
  plan.name = "a \"quoted\" \\ \xff name";
  const ExportedRun run(plan);
  CHECK_THAT(
      run.text(),
      Contains(R"(leeway_run_info{name="a \"quoted\" \\ )"
               "\xef\xbf\xbd"
               R"( name",run=")") &&
          Contains(R"(policy="ssp",workers="3",shards="2",stages="1",simulated="false"} 1)"));
}

TEST_CASE("metrics without a value are left out") {
  const ExportedRun run;
  CHECK_THAT(run.text(), Contains("leeway_run_info") && !Contains("leeway_iterations_total") &&
                             !Contains("_loss") && !Contains("_accuracy") &&
                             !Contains("leeway_takeovers_total") &&
                             !Contains("leeway_last_checkpoint"));
  Progress progress = some_progress();
  run.exporter->progress(progress);
  progress.train_loss = progress.train_accuracy = kNan;
  run.exporter->progress(progress);
  CHECK(run.values()["leeway_train_loss"] == 0.5);

  Plan without_losses = tiny_plan();
  without_losses.simulated = plan::World{.cost_only = true};
  const ExportedRun costs(without_losses);
  costs.exporter->progress(some_progress());
  costs.exporter->evaluated({.loss = 1});
  CHECK_THAT(costs.text(), Contains("leeway_iterations_total 40") && !Contains("_loss") &&
                               !Contains("_accuracy") && Contains("simulated=\"true\""));
}

TEST_CASE("a counter never falls") {
  const ExportedRun run;
  run.exporter->progress(some_progress());
  Progress fewer = some_progress();
  fewer.parked_pulls = 3;
  fewer.push_bytes = 10;
  fewer.iterations = 41;
  run.exporter->progress(fewer);
  auto values = run.values();
  CHECK(values["leeway_pulls_parked_total"] == 12);
  CHECK(values["leeway_pushed_bytes_total{encoded=\"true\"}"] == 1000);
  CHECK(values["leeway_iterations_total"] == 41);
}

TEST_CASE("the staleness bound follows the policy") {
  const auto bound_of = [](const plan::Consistency& policy) {
    Plan plan = tiny_plan();
    plan.consistency = policy;
    const ExportedRun run(plan);
    Progress progress = some_progress();
    progress.staleness = 9;
    run.exporter->progress(progress);
    return run.values()["leeway_staleness_bound_iterations"];
  };
  CHECK(bound_of(plan::Bsp{}) == 0);
  CHECK(std::isinf(bound_of(plan::Asp{})));
  CHECK(bound_of(plan::Adaptive{1, 20}) == 9);
}

TEST_CASE("events are summed by worker") {
  ExportedRun run;
  run.iteration(1, Instant{} + seconds(1), milliseconds(30), milliseconds(200));
  run.iteration(1, Instant{} + seconds(2), milliseconds(10), milliseconds(50));
  run.iteration(2, Instant{} + seconds(2), milliseconds(0), milliseconds(3));
  run.iteration(3, Instant{} + seconds(2), milliseconds(5), milliseconds(5));  // no such worker
  for (const std::int64_t iteration : {5, 5, 6, 105})
    run.exporter->event(address_of(ShardId(0)), Instant{},
                        event::PullAnswered{WorkerId(0), Iteration(iteration), Clock(5), Clock(5)});
  auto values = run.values();
  CHECK(values["leeway_wait_seconds_total{worker=\"1\"}"] == Approx(0.04));
  CHECK(values["leeway_compute_seconds_total{worker=\"1\"}"] == Approx(0.25));
  CHECK(values["leeway_compute_seconds_total{worker=\"2\"}"] == Approx(0.003));
  CHECK(values["leeway_wait_seconds_total{worker=\"0\"}"] == 0);
  CHECK(values.count("leeway_wait_seconds_total{worker=\"3\"}") == 0);
  CHECK(values["leeway_iteration_seconds_count{worker=\"1\"}"] == 2);
  CHECK(values["leeway_iteration_seconds_sum{worker=\"1\"}"] == Approx(0.29));
  CHECK(values["leeway_iteration_seconds_bucket{worker=\"1\",le=\"0.05\"}"] == 0);
  CHECK(values["leeway_iteration_seconds_bucket{worker=\"1\",le=\"0.25\"}"] == 2);
  CHECK(values["leeway_iteration_seconds_bucket{worker=\"1\",le=\"+Inf\"}"] == 2);
  CHECK(values["leeway_pull_lead_iterations_bucket{le=\"0\"}"] == 2);
  CHECK(values["leeway_pull_lead_iterations_bucket{le=\"1\"}"] == 3);
  CHECK(values["leeway_pull_lead_iterations_bucket{le=\"64\"}"] == 3);
  CHECK(values["leeway_pull_lead_iterations_count"] == 4);
  CHECK(values["leeway_pull_lead_iterations_sum"] == 101);
}

TEST_CASE("a run with more than 64 workers has no label for each worker") {
  Plan plan = tiny_plan();
  for (const std::uint32_t workers : {64u, 65u}) {
    plan.workers = workers;
    ExportedRun run(plan);
    run.iteration(3, Instant{}, milliseconds(20), milliseconds(10));
    run.iteration(63, Instant{}, milliseconds(40), milliseconds(20));
    auto values = run.values();
    CHECK(values.count("leeway_wait_seconds_total{worker=\"63\"}") == (workers == 64));
    CHECK(values["leeway_wait_seconds_total"] == Approx(workers == 64 ? 0 : 0.06));
    CHECK(values["leeway_iteration_seconds_count"] == (workers == 64 ? 0 : 2));
  }
}

TEST_CASE("no event is lost while threads add events and others scrape") {
  constexpr int kEvents = 20'000;
  ExportedRun run;
  std::vector<std::thread> threads;
  for (const std::uint32_t worker : {0u, 1u, 2u})
    threads.emplace_back([&run, worker] {
      for (int i = 0; i < kEvents; ++i)
        run.iteration(worker, Instant{} + seconds(i), milliseconds(1), milliseconds(1));
    });
  for (int i = 0; i < 20; ++i) {
    run.exporter->progress(some_progress());
    const auto values = run.values();
    CHECK(values.at("leeway_iteration_seconds_bucket{worker=\"1\",le=\"+Inf\"}") ==
          values.at("leeway_iteration_seconds_count{worker=\"1\"}"));
  }
  for (auto& thread : threads) thread.join();
  auto values = run.values();
  for (const char* worker : {"0", "1", "2"}) {
    CHECK(values[concat("leeway_iteration_seconds_count{worker=\"", worker, "\"}")] == kEvents);
    CHECK(values[concat("leeway_wait_seconds_total{worker=\"", worker, "\"}")] ==
          Approx(kEvents * 1e-3));
  }
}

TEST_CASE("an address is a port, or a host and a port") {
  const auto job = job_of(tiny_plan());
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    const auto opened = PrometheusExporter::open(host + ":0", *job);
    REQUIRE(opened);
    CHECK_THAT((*opened)->url(), Contains("http://" + host + ":") && Contains("/metrics"));
    CHECK_THAT(get(port_of(**opened)), Contains("leeway_run_info"));
    CHECK_THAT(get(port_of(**opened), "/else"), Contains("404"));
  }
}

TEST_CASE("an address that is malformed, taken or of another machine is refused") {
  const ExportedRun run;
  const std::string taken = concat("127.0.0.1:", port_of(*run.exporter));
  CHECK(refusal(taken) == concat("--metrics ", taken,
                                 ": cannot listen there: Address already in use; give another "
                                 "port, or 0 for any free port"));
  CHECK_THAT(refusal("192.0.2.1:9464"), Contains("Cannot assign requested address"));
  CHECK(refusal("abc") ==
        "--metrics abc: \"abc\" is not a port; give [HOST:]PORT with a port of 0 to 65535");
  for (const std::string address : {"", "65536", "-1", "9464x", "localhost:", "localhost: 1"})
    CHECK_THAT(refusal(address), Contains("is not a port; give [HOST:]PORT"));
  CHECK_THAT(refusal(":9464"), Contains("no host before the colon; give 0.0.0.0:PORT or PORT"));
  CHECK_THAT(refusal("::1:9464"), Contains("an IPv6 address needs brackets, such as [::1]:9464"));
  CHECK_THAT(refusal("no.such.host.invalid:9464"), Contains("the host cannot be found"));
}

TEST_CASE("docs/metrics.md lists each metric, and the Grafana dashboard queries only these") {
  const std::string root = LEEWAY_SOURCE_DIR;
  const auto families = families_of(full_run().text());
  REQUIRE(families.size() > 30);
  std::set<std::string> documented, queried;
  for (const auto& name : names_in(read_text(root + "/docs/metrics.md"))) documented.insert(name);
  CHECK(documented == families);
  static const std::regex suffix("_(bucket|count|sum)$");
  for (const auto& name : names_in(read_text(root + "/docs/grafana.json")))
    queried.insert(families.contains(name) ? name : std::regex_replace(name, suffix, ""));
  for (const auto& name : queried) {
    INFO(name);
    CHECK(families.contains(name));
  }
  CHECK(queried.size() > 15);
}
