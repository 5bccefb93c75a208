#include "dashboard/recorded.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "blame/result_file.hpp"
#include "blame/run_waits.hpp"
#include "core/text.hpp"
#include "monitoring/event_file.hpp"
#include "monitoring/metrics_file.hpp"
#include "policies/consistency/consistency.hpp"

namespace leeway::dashboard {
namespace {

using Json = nlohmann::json;

Instant instant_of(double seconds) {
  return {static_cast<std::int64_t>(seconds * 1e9)};
}

template <class T>
T value_or(const Json& json, const char* key, T otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<T>() : otherwise;
}

std::string text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

/// With events, only the metrics since the last resume, with times since then, like the events.
std::vector<Json> metrics_of(const std::string& folder, bool has_events) {
  MetricsFile metrics = read_metrics(folder);
  if (!has_events) return std::move(metrics.lines);
  const auto resume = metrics.lines.begin() + static_cast<std::ptrdiff_t>(metrics.before_resume);
  double offset = 0;
  for (auto line = metrics.lines.begin(); line != resume; ++line)
    offset = std::max(offset, number_in(*line, "seconds"));
  metrics.lines.erase(metrics.lines.begin(), resume);
  for (Json& line : metrics.lines)
    line["seconds"] = std::max(number_in(line, "seconds") - offset, 0.0);
  return std::move(metrics.lines);
}

void add_metrics(RunHistory& history, const Json& line) {
  const double seconds = number_in(line, "seconds");
  const auto samples_trained = value_or(line, "samples_trained", std::uint64_t{0});
  const std::string error = text_in(line, "error");
  if (line.contains("evicted_worker")) {
    const WorkerId worker(value_or(line, "evicted_worker", 0u));
    history.explain_eviction(worker, text_in(line, "reason"), seconds);
  } else if (line.contains("worker_back")) {
    if (!history.info().has_events)
      history.mark(seconds, "returned",
                   concat("worker ", value_or(line, "worker_back", 0u), " has returned"));
  } else if (line.contains("checkpoint")) {
    history.checkpointed({.now = instant_of(seconds),
                          .number = value_or(line, "checkpoint", std::uint64_t{0}),
                          .error = error});
  } else if (!error.empty()) {
    history.evaluated({.now = instant_of(seconds), .error = error});
  } else if (line.contains("test_loss")) {
    history.evaluated({.now = instant_of(seconds),
                       .samples_trained = samples_trained,
                       .loss = value_or(line, "test_loss", 0.0),
                       .accuracy = value_or(line, "test_accuracy", 0.0)});
  } else if (line.contains("iterations")) {
    Progress progress;
    progress.now = instant_of(seconds);
    progress.epoch = Epoch(value_or(line, "epoch", std::int64_t{0}));
    progress.iterations = value_or(line, "iterations", std::uint64_t{0});
    progress.samples = progress.samples_trained = value_or(line, "samples", std::uint64_t{0});
    progress.clock_gap = value_or(line, "clock_gap", std::int64_t{0});
    progress.max_clock_gap = value_or(line, "max_clock_gap", std::int64_t{0});
    progress.parked_pulls = value_or(line, "parked_pulls", std::uint64_t{0});
    progress.live_workers = value_or(line, "live_workers", 0u);
    progress.push_bytes = value_or(line, "pushed_bytes", std::uint64_t{0});
    progress.pull_bytes = value_or(line, "pulled_bytes", std::uint64_t{0});
    progress.stage_bytes = value_or(line, "stage_bytes", std::uint64_t{0});
    progress.train_loss = value_or(line, "train_loss", std::numeric_limits<double>::quiet_NaN());
    progress.train_accuracy = value_or(line, "train_accuracy", 0.0);
    history.progress(progress);
    history.memory(value_or(line, "memory_bytes", std::uint64_t{0}));
  }
}

Progress last_progress(const Json& result, const Progress& latest) {
  Progress last = latest;
  last.now = instant_of(result.at("seconds"));
  last.iterations = result.at("iterations");
  last.samples_trained = result.at("samples_trained");
  last.max_clock_gap = result.at("max_clock_gap");
  last.parked_pulls = result.at("parked_pulls");
  last.push_bytes = result.at("pushed_bytes");
  last.plain_push_bytes = result.at("pushed_bytes_without_codec");
  last.pull_bytes = result.at("pulled_bytes");
  last.plain_pull_bytes = result.at("pulled_bytes_without_codec");
  last.stage_bytes = value_or(result, "stage_bytes", std::uint64_t{0});
  last.plain_stage_bytes = value_or(result, "stage_bytes_without_codec", std::uint64_t{0});
  last.partial_pushes = result.at("partial_pushes");
  last.malformed = result.at("malformed_messages");
  last.refused = result.at("refused_messages");
  last.train_loss = std::numeric_limits<double>::quiet_NaN();
  last.parked_now = 0;
  return last;
}

/// The waits of a run without events, from its result.
Status set_waits(RunHistory& history, const std::string& folder) {
  const auto waits = blame::read_run_waits(folder);
  if (!waits) return waits.error();
  std::map<blame::Cause, double> causes;
  for (const auto& [cause, seconds] : waits->by_cause()) causes[cause] = seconds;
  history.set_waits(causes, waits->compute);
  return {};
}

}  // namespace

Expected<std::unique_ptr<RunHistory>> load_history(const std::string& folder, const Plan& plan,
                                                   const std::string& policy) {
  const auto events = events_path(folder);
  const bool has_result = std::filesystem::exists(folder + "/result.json");
  const std::vector<Json> metrics = metrics_of(folder, bool(events));
  RunInfo info = info_of(plan, policy, make_consistency(plan.consistency)->largest_bound());
  info.kind = "recorded";
  info.has_events = bool(events);
  info.has_losses = false;
  for (const Json& line : metrics) {
    info.has_losses |= line.contains("train_loss") || line.contains("test_loss");
    info.has_accuracy |= line.contains("train_accuracy") || line.contains("test_accuracy");
  }
  auto history = std::make_unique<RunHistory>(std::move(info));
  if (events) {
    const auto counted = read_events(*events, [&](const EventRecord& record) {
      history->event(record.actor, record.at, record.event);
    });
    if (!counted) return counted.error();
  } else if (const auto set = set_waits(*history, folder); !set) {
    return set.error();
  }
  for (const Json& line : metrics) add_metrics(*history, line);
  if (!has_result) {
    history->ended(history->now(), "no result",
                   "the run proceeds, or its program was killed; `leeway resume` continues it");
    return history;
  }
  const auto read = blame::read_result(folder, [&](const Json& result) {
    history->progress(last_progress(result, history->latest()));
    history->ended(result.at("seconds"), result.at("reason"), result.at("text"));
  });
  if (!read) return read.error();
  return history;
}

}  // namespace leeway::dashboard
