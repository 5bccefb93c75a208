#include "monitoring/prometheus.hpp"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "core/memory.hpp"
#include "core/text.hpp"
#include "monitoring/event_totals.hpp"
#include "monitoring/listen_address.hpp"

namespace leeway {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr const char* kPath = "/metrics";

/// A metric that is a field of the newest Progress.
struct ProgressMetric {
  const char* name;
  const char* help;
  double (*value)(const Progress&);
};

constexpr std::array<ProgressMetric, 7> kProgressCounters = {{
    {"leeway_iterations_total", "Iterations that workers, or pipelines, have computed.",
     [](const Progress& now) { return static_cast<double>(now.iterations); }},
    {"leeway_samples_total", "Samples that workers have computed, also those computed again.",
     [](const Progress& now) { return static_cast<double>(now.samples); }},
    {"leeway_trained_samples_total", "Samples whose gradients are in the weights, each once.",
     [](const Progress& now) { return static_cast<double>(now.samples_trained); }},
    {"leeway_pulls_parked_total", "Pulls that came too early and were parked, over all shards.",
     [](const Progress& now) { return static_cast<double>(now.parked_pulls); }},
    {"leeway_partial_pushes_total", "Pushes of lost workers that only some shards had.",
     [](const Progress& now) { return static_cast<double>(now.partial_pushes); }},
    {"leeway_malformed_messages_total",
     "Messages that could not be decoded or contradict the plan.",
     [](const Progress& now) { return static_cast<double>(now.malformed); }},
    {"leeway_refused_messages_total", "Messages that shards refused with a reason.",
     [](const Progress& now) { return static_cast<double>(now.refused); }},
}};

constexpr std::array<ProgressMetric, 5> kProgressGauges = {{
    {"leeway_run_seconds", "Time since the start of the actors, virtual in a simulation.",
     [](const Progress& now) { return (now.now - Instant{}).seconds(); }},
    {"leeway_epoch", "Epoch of the newest lease, from 0.",
     [](const Progress& now) { return static_cast<double>(now.epoch.value()); }},
    {"leeway_live_workers", "Workers that take part in the run.",
     [](const Progress& now) { return static_cast<double>(now.live_workers); }},
    {"leeway_clock_gap_iterations", "Largest distance between the clocks of live workers.",
     [](const Progress& now) { return static_cast<double>(now.clock_gap); }},
    {"leeway_parked_pulls", "Pulls that are parked at the shard with the most.",
     [](const Progress& now) { return static_cast<double>(now.parked_now); }},
}};

/// Bytes in messages, and the same without a codec.
struct ByteMetric {
  const char* name;
  const char* help;
  std::uint64_t Progress::*encoded;
  std::uint64_t Progress::*plain;
};
constexpr std::array<ByteMetric, 3> kByteCounters = {{
    {"leeway_pushed_bytes_total",
     "Bytes of gradients that shards have received; encoded=\"false\": without a codec.",
     &Progress::push_bytes, &Progress::plain_push_bytes},
    {"leeway_pulled_bytes_total",
     "Bytes of weights that shards have sent; encoded=\"false\": without a codec.",
     &Progress::pull_bytes, &Progress::plain_pull_bytes},
    {"leeway_stage_bytes_total",
     "Bytes that the stages of pipelines have sent each other; encoded=\"false\": without a codec.",
     &Progress::stage_bytes, &Progress::plain_stage_bytes},
}};

/// The families of one scrape.
class Scrape {
 public:
  MetricFamily& add(MetricType type, const char* name, const char* help) {
    families_.push_back({name, help, type, {}});
    return families_.back();
  }
  void counter(const char* name, const char* help, double value) {
    add_counter(add(MetricType::Counter, name, help), value);
  }
  void gauge(const char* name, const char* help, double value, Labels labels = {}) {
    ClientMetric& metric = add(MetricType::Gauge, name, help).metric.emplace_back();
    metric.gauge.value = value;
    metric.label = std::move(labels);
  }
  static void add_counter(MetricFamily& family, double value, Labels labels = {}) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.counter.value = value;
    metric.label = std::move(labels);
  }
  /// `unit`: of one step of the observations.
  template <std::size_t kBounds>
  static void add_histogram(MetricFamily& family, const AtomicHistogram<kBounds>& histogram,
                            double unit, Labels labels = {}) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    const auto counts = histogram.read();
    auto& out = metric.histogram;
    for (std::size_t range = 0; range <= kBounds; ++range) {
      out.sample_count += counts.by_bound[range];
      const double bound = range < kBounds ? static_cast<double>(histogram.bounds()[range]) * unit
                                           : std::numeric_limits<double>::infinity();
      out.bucket.push_back({out.sample_count, bound});
    }
    out.sample_sum = static_cast<double>(counts.sum) * unit;
  }
  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

/// Metrics of this process, which the library lacks. Their names are those of other clients.
void add_process_metrics(Scrape& scrape) {
  if (const std::uint64_t bytes = resident_bytes(); bytes > 0)
    scrape.gauge("process_resident_memory_bytes", "Memory of the program's process.",
                 static_cast<double>(bytes));
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  scrape.counter("process_cpu_seconds_total", "Processor time of the program's process.",
                 seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
}

/// Prometheus refuses a whole scrape for one byte that is not UTF-8.
std::string as_utf8(const std::string& text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

Labels run_labels(const Job& job) {
  const Plan& plan = job.plan;
  return {{"name", as_utf8(plan.name)},
          {"run", job.run},
          {"policy", std::string(job.consistency->name())},
          {"workers", std::to_string(plan.workers)},
          {"shards", std::to_string(plan.shards)},
          {"stages", std::to_string(job.stages->spec().stages)},
          {"simulated", plan.simulated ? "true" : "false"}};
}

}  // namespace

/// The state of the run. Events and the audience's thread change it, scrapes read it.
class PrometheusExporter::Metrics final : public prometheus::Collectable {
 public:
  explicit Metrics(const Job& job)
      : run_labels_(run_labels(job)),
        workers_(job.plan.workers),
        has_losses_(job.has_losses()),
        has_classes_(has_losses_ && job.data.train->classes() > 0),
        has_moving_bound_(job.consistency->has_moving_bound()),
        has_standbys_(job.plan.replicas > 1),
        bound_(job.first_bound() == kUnbounded ? std::numeric_limits<double>::infinity()
                                               : static_cast<double>(job.first_bound())),
        events_(job.plan.workers, job.stages->piped()) {}

  void add(Instant at, const Event& event) { events_.add(at, event); }

  void set(const Progress& now) {
    std::lock_guard lock(mutex_);
    now_ = now;
    // A shard that continues on a standby may report less than before; a counter never falls.
    for (std::size_t i = 0; i < counters_.size(); ++i)
      counters_[i] = std::max(counters_[i], kProgressCounters[i].value(now));
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i].encoded = std::max(bytes_[i].encoded, now.*kByteCounters[i].encoded);
      bytes_[i].plain = std::max(bytes_[i].plain, now.*kByteCounters[i].plain);
    }
    if (has_moving_bound_) bound_ = now.staleness;
    if (!std::isfinite(now.train_loss)) return;
    train_ = {now.train_loss, now.train_accuracy};
  }

  void set(const EvaluationResult& result) {
    std::lock_guard lock(mutex_);
    if (result.error.empty()) test_ = {result.loss, result.accuracy};
  }

  void set(const CheckpointResult& result) {
    std::lock_guard lock(mutex_);
    const bool is_written = result.error.empty();
    ++(is_written ? checkpoints_ : failed_checkpoints_);
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    if (is_written) checkpoint_at_ = now.count();
  }

  void add_eviction() {
    std::lock_guard lock(mutex_);
    ++evictions_;
  }
  void add_return() {
    std::lock_guard lock(mutex_);
    ++returns_;
  }
  void add(const msg::ReplicasChanged& changed) {
    using Change = msg::ReplicasChanged::Change;
    std::lock_guard lock(mutex_);
    lost_replicas_ +=
        changed.change == Change::primary_lost || changed.change == Change::standby_lost;
    takeovers_ += changed.change == Change::took_over;
  }

  std::vector<MetricFamily> Collect() const override {
    Scrape scrape;
    {
      std::lock_guard lock(mutex_);
      scrape.gauge("leeway_run_info", "The run; always 1.", 1, run_labels_);
      scrape.gauge("leeway_planned_workers", "Workers of the plan.", workers_);
      scrape.gauge("leeway_staleness_bound_iterations",
                   "Iterations that a worker may be ahead of the slowest; +Inf: no bound.", bound_);
      add_progress(scrape);
      add_losses(scrape);
      add_recovery(scrape);
    }
    add_events(scrape);
    add_process_metrics(scrape);
    return scrape.take();
  }

 private:
  struct Quality {
    double loss = 0, accuracy = 0;
  };
  struct Bytes {
    std::uint64_t encoded = 0, plain = 0;
  };

  /// Adds nothing before the first report: its counts of a resumed run are no increase.
  void add_progress(Scrape& scrape) const {
    if (!now_) return;
    for (std::size_t i = 0; i < counters_.size(); ++i)
      scrape.counter(kProgressCounters[i].name, kProgressCounters[i].help, counters_[i]);
    for (const ProgressMetric& gauge : kProgressGauges)
      scrape.gauge(gauge.name, gauge.help, gauge.value(*now_));
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      MetricFamily& family =
          scrape.add(MetricType::Counter, kByteCounters[i].name, kByteCounters[i].help);
      Scrape::add_counter(family, static_cast<double>(bytes_[i].encoded), {{"encoded", "true"}});
      Scrape::add_counter(family, static_cast<double>(bytes_[i].plain), {{"encoded", "false"}});
    }
  }

  /// Leaves out losses before the first report, and accuracies without classes.
  void add_losses(Scrape& scrape) const {
    if (has_losses_ && train_)
      scrape.gauge("leeway_train_loss", "Mean training loss of the newest samples.", train_->loss);
    if (has_classes_ && train_)
      scrape.gauge("leeway_train_accuracy_ratio",
                   "Share of the newest training samples that were classified correctly.",
                   train_->accuracy);
    if (has_losses_ && test_)
      scrape.gauge("leeway_test_loss", "Loss of the newest evaluation.", test_->loss);
    if (has_classes_ && test_)
      scrape.gauge("leeway_test_accuracy_ratio", "Accuracy of the newest evaluation.",
                   test_->accuracy);
  }

  void add_recovery(Scrape& scrape) const {
    scrape.counter("leeway_evictions_total", "Workers, or pipelines, that were evicted.",
                   evictions_);
    scrape.counter("leeway_rejoins_total", "Evicted workers that take part again.", returns_);
    scrape.counter("leeway_checkpoints_written_total", "Checkpoints that are complete.",
                   checkpoints_);
    scrape.counter("leeway_checkpoints_failed_total", "Checkpoints that could not be written.",
                   failed_checkpoints_);
    if (checkpoints_ > 0)
      scrape.gauge("leeway_last_checkpoint_timestamp_seconds",
                   "When the newest complete checkpoint was reported, in Unix time.",
                   checkpoint_at_);
    if (!has_standbys_) return;
    scrape.counter("leeway_replicas_lost_total", "Primaries and standbys of shards that were lost.",
                   lost_replicas_);
    scrape.counter("leeway_takeovers_total", "Standbys that became the primary of their shard.",
                   takeovers_);
  }

  void add_events(Scrape& scrape) const {
    constexpr double kNs = 1e-9;
    const auto work = events_.work();
    const auto labels_of = [&](std::size_t worker) {
      return events_.is_by_worker() ? Labels{{"worker", std::to_string(worker)}} : Labels{};
    };
    const auto add_times = [&](const char* name, const char* help,
                               std::atomic<std::int64_t> EventTotals::Work::*time) {
      MetricFamily& family = scrape.add(MetricType::Counter, name, help);
      for (std::size_t i = 0; i < work.size(); ++i) {
        const std::int64_t ns = (work[i].*time).load(std::memory_order_relaxed);
        Scrape::add_counter(family, static_cast<double>(ns) * kNs, labels_of(i));
      }
    };
    add_times("leeway_wait_seconds_total", "Time in which a worker was ready but had no weights.",
              &EventTotals::Work::wait_ns);
    add_times("leeway_compute_seconds_total", "Time in which a worker computed its iterations.",
              &EventTotals::Work::compute_ns);
    MetricFamily& iterations =
        scrape.add(MetricType::Histogram, "leeway_iteration_seconds",
                   "Time of a worker's iteration, from ready to its end: waiting and computing.");
    for (std::size_t i = 0; i < work.size(); ++i)
      Scrape::add_histogram(iterations, work[i].iterations, kNs, labels_of(i));
    Scrape::add_histogram(
        scrape.add(MetricType::Histogram, "leeway_pull_lead_iterations",
                   "Iterations of answered pulls ahead of the slowest worker, at each shard."),
        events_.leads(), 1);
  }

  const Labels run_labels_;
  const double workers_;
  const bool has_losses_, has_classes_, has_moving_bound_, has_standbys_;

  mutable std::mutex mutex_;  // of the following, up to events_
  std::optional<Progress> now_;
  std::array<double, kProgressCounters.size()> counters_{};
  std::array<Bytes, kByteCounters.size()> bytes_{};
  double bound_;
  std::optional<Quality> train_, test_;
  double evictions_ = 0, returns_ = 0, lost_replicas_ = 0, takeovers_ = 0;
  double checkpoints_ = 0, failed_checkpoints_ = 0, checkpoint_at_ = 0;

  EventTotals events_;
};

Expected<std::unique_ptr<PrometheusExporter>> PrometheusExporter::open(const std::string& address,
                                                                       const Job& job) {
  auto found = find_listen_address("--metrics", address);
  if (!found) return found.error();
  auto metrics = std::make_shared<Metrics>(job);
  try {
    auto server = std::make_shared<prometheus::Exposer>(concat(found->numeric, ':', found->port));
    server->RegisterCollectable(metrics, kPath);
    found->port = static_cast<std::uint16_t>(server->GetListeningPorts().front());
    return std::unique_ptr<PrometheusExporter>(
        new PrometheusExporter(std::move(metrics), std::move(server), *found));
  } catch (const std::runtime_error& error) {  // another process was faster
    return Error{concat("--metrics ", address, ": cannot listen there: ", error.what(),
                        "; give another port, or 0 for any free port")};
  }
}

PrometheusExporter::PrometheusExporter(std::shared_ptr<Metrics> metrics,
                                       std::shared_ptr<void> server, ListenAddress address)
    : metrics_(std::move(metrics)),
      server_(std::move(server)),
      address_(std::move(address)),
      url_(http_url(address_.host, address_.port) + kPath) {}

PrometheusExporter::~PrometheusExporter() {
  // The server notices its end only after two seconds, or with the next connection.
  std::atomic<bool> has_ended{false};
  std::thread waker([&] {
    while (!has_ended) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (!has_ended) knock(address_);
    }
  });
  server_.reset();
  has_ended = true;
  waker.join();
}

void PrometheusExporter::event(Address, Instant at, const Event& event) {
  metrics_->add(at, event);
}

void PrometheusExporter::progress(const Progress& progress) {
  metrics_->set(progress);
}

void PrometheusExporter::evaluated(const EvaluationResult& result) {
  metrics_->set(result);
}

void PrometheusExporter::checkpointed(const CheckpointResult& result) {
  metrics_->set(result);
}

void PrometheusExporter::evicted(WorkerId, const msg::Evicted&) {
  metrics_->add_eviction();
}

void PrometheusExporter::came_back(WorkerId) {
  metrics_->add_return();
}

void PrometheusExporter::replicas_changed(const msg::ReplicasChanged& changed) {
  metrics_->add(changed);
}

void PrometheusExporter::ended(const RunTotals& totals) {
  metrics_->set(totals.last);
}

}  // namespace leeway
