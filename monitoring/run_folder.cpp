#include "monitoring/run_folder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/store.hpp"
#include "core/files.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/datasets/vocabulary.hpp"
#include "models/weights_metadata.hpp"
#include "monitoring/format.hpp"
#include "monitoring/metrics_file.hpp"

namespace leeway {
namespace {

constexpr const char* kEventFiles = "events.out.tfevents.*";

/// Replaces the file as a whole: a run with half a plan could not be resumed.
Status write_text(const std::string& path, const std::string& text) {
  const auto written = write_durably(disk(), path, text);
  if (written) return {};
  return Error{concat(written.error().text, "; check its permissions and the free disk space")};
}

/// Each start and resumption of the run adds a file.
bool has_event_files(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) return true;
  return false;
}

bool has_checkpoints(const std::string& folder) {
  const auto numbers = checkpoint::Store(disk(), folder).numbers();
  return numbers && !numbers->empty();
}

}  // namespace

std::string default_run_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const std::string base = concat("runs/", name, '-', stamp);
  std::string folder = base;
  for (int i = 2; std::filesystem::exists(folder); ++i) folder = concat(base, '-', i);
  return folder;
}

RunFolder::RunFolder(std::string folder, const Job& job, std::unique_ptr<FolderLock> lock)
    : folder_(std::move(folder)),
      lock_(std::move(lock)),
      name_(job.plan.name),
      metadata_(weights_metadata(job.plan, job.data.preprocessing.get())),
      classes_(job.data.train->classes() > 0),
      has_losses_(job.has_losses()),
      adaptive_(job.consistency->has_moving_bound()),
      metrics_(path("metrics.jsonl")),
      train_{.name = "training"},
      train_accuracy_{.name = "training"},
      test_{.name = "test"},
      test_accuracy_{.name = "test"} {
  remove_incomplete_line(path("metrics.jsonl"));
}

Expected<std::unique_ptr<RunFolder>> RunFolder::create(const std::string& folder, const Job& job) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Error{
        concat(folder, ": cannot be created: ", error.message(), "; give another with --out DIR")};
  if (std::filesystem::exists(folder + "/result.json") ||
      std::filesystem::exists(folder + "/metrics.jsonl"))
    return Error{
        concat(folder, ": already holds a run; give another with --out DIR, or remove it")};
  return open(folder, job);
}

Expected<std::unique_ptr<RunFolder>> RunFolder::resume(const std::string& folder, const Job& job) {
  if (const auto vocabulary = job.data.train->vocabulary()) {
    const std::string file = folder + "/vocabulary.json";
    const auto before = disk().read(file);
    if (before && (*before)->text() != vocabulary->json())
      return Error{concat(file,
                          ": the text has other characters than the run began with; resume "
                          "with the same text")};
  }
  auto resumed = open(folder, job);
  if (!resumed) return resumed;
  const auto& manifest = job.resumed->manifest;
  (*resumed)->read_metrics(checkpoint::samples_trained(manifest));
  (*resumed)->metrics_.add(nlohmann::ordered_json{
      {"resumed_from", manifest.number}, {"samples_trained", checkpoint::samples_trained(manifest)}}
                               .dump());
  return resumed;
}

void RunFolder::read_metrics(std::uint64_t samples_trained) {
  std::vector<nlohmann::json> lines = leeway::read_metrics(folder_).lines;
  drop_beyond(static_cast<double>(samples_trained), lines);
  for (const auto& line : lines) {
    const auto number = [&](const char* key) { return number_in(line, key); };
    const double at = number("seconds");
    seconds_before_ = std::max(seconds_before_, at);
    if (line.contains("test_loss")) {
      test_.points.emplace_back(at, number("test_loss"));
      test_accuracy_.points.emplace_back(at, 100 * number("test_accuracy"));
    } else if (line.contains("train_loss")) {
      train_.points.emplace_back(at, number("train_loss"));
      train_accuracy_.points.emplace_back(at, 100 * number("train_accuracy"));
    }
  }
}

Expected<std::unique_ptr<RunFolder>> RunFolder::open(const std::string& folder, const Job& job) {
  auto lock = FolderLock::take(folder, "wait for it to end, or give another with --out DIR");
  if (!lock) return lock.error();
  if (const auto written = write_text(folder + "/plan.json", to_json(job.given)); !written)
    return written.error();
  if (const auto& preprocessing = job.data.preprocessing)
    if (const auto written = write_text(folder + "/preprocessing.json", preprocessing->to_json());
        !written)
      return written.error();
  if (const auto vocabulary = job.data.train->vocabulary())
    if (const auto written = write_text(folder + "/vocabulary.json", vocabulary->json()); !written)
      return written.error();
  return std::unique_ptr<RunFolder>(new RunFolder(folder, job, std::move(*lock)));
}

void RunFolder::progress(const Progress& progress) {
  nlohmann::ordered_json json{
      {"seconds", seconds_of(progress.now)},   {"epoch", progress.epoch.value()},
      {"iterations", progress.iterations},     {"samples", progress.samples},
      {"clock_gap", progress.clock_gap},       {"max_clock_gap", progress.max_clock_gap},
      {"parked_now", progress.parked_now},     {"parked_pulls", progress.parked_pulls},
      {"live_workers", progress.live_workers}, {"pushed_bytes", progress.push_bytes},
      {"pulled_bytes", progress.pull_bytes},   {"stage_bytes", progress.stage_bytes},
      {"memory_bytes", resident_bytes()}};
  if (adaptive_) json["staleness_bound"] = progress.staleness;
  if (has_losses_ && std::isfinite(progress.train_loss)) {
    json["train_loss"] = progress.train_loss;
    if (classes_) json["train_accuracy"] = progress.train_accuracy;
    train_.points.emplace_back(seconds_of(progress.now), progress.train_loss);
    train_accuracy_.points.emplace_back(seconds_of(progress.now), 100 * progress.train_accuracy);
  }
  metrics_.add(json.dump());
}

void RunFolder::evaluated(const EvaluationResult& result) {
  if (!has_losses_) return;
  if (!result.error.empty())
    return metrics_.add(nlohmann::ordered_json{
        {"seconds", seconds_of(result.now)},
        {"samples_trained", result.samples_trained},
        {"error",
         result.error}}.dump());
  test_.points.emplace_back(seconds_of(result.now), result.loss);
  test_accuracy_.points.emplace_back(seconds_of(result.now), 100 * result.accuracy);
  nlohmann::ordered_json json{{"seconds", seconds_of(result.now)},
                              {"samples_trained", result.samples_trained},
                              {"test_loss", result.loss}};
  if (classes_) json["test_accuracy"] = result.accuracy;
  metrics_.add(json.dump());
}

void RunFolder::checkpointed(const CheckpointResult& result) {
  nlohmann::ordered_json json{{"seconds", seconds_of(result.now)},
                              {"checkpoint", result.number},
                              {"samples_trained", result.samples_trained}};
  if (!result.error.empty()) json["error"] = result.error;
  metrics_.add(json.dump());
}

void RunFolder::evicted(WorkerId worker, const msg::Evicted& evicted) {
  metrics_.add(nlohmann::ordered_json{{"evicted_worker", worker.value()},
                                      {"reason", evicted.reason},
                                      {"returned_samples", evicted.returned_samples},
                                      {"partial", evicted.partial}}
                   .dump());
}

void RunFolder::came_back(WorkerId worker) {
  metrics_.add(nlohmann::ordered_json{{"worker_back", worker.value()}}.dump());
}

void RunFolder::ended(const RunTotals& totals) {
  progress(totals.last);
}

Status RunFolder::keep_last_snapshot(const std::vector<NamedTensor>& weights, Iteration iteration) {
  Metadata metadata = metadata_;
  metadata["iteration"] = concat(iteration);
  return write_safetensors(path("last-snapshot.safetensors"), weights, metadata);
}

const std::vector<UnwrittenFile>& RunFolder::finish(const std::string& result_json,
                                                    const std::vector<NamedTensor>& weights) {
  const auto note = [&](const char* file, const Status& written) {
    if (!written) unwritten_.push_back({file, written.error().text});
  };
  std::vector<Chart> charts;
  charts.push_back({.title = name_ + ": loss",
                    .x_label = "seconds",
                    .y_label = "loss",
                    .series = {train_, test_}});
  if (classes_)
    charts.push_back({.title = name_ + ": accuracy",
                      .x_label = "seconds",
                      .y_label = "accuracy, %",
                      .series = {train_accuracy_, test_accuracy_}});
  note("result.json", write_text(path("result.json"), result_json));
  note("curves.svg", write_text(path("curves.svg"), svg(charts)));
  if (!weights.empty())
    note("weights.safetensors", write_safetensors(path("weights.safetensors"), weights, metadata_));
  return unwritten_;
}

std::string RunFolder::kept_text(OutputFiles outputs) const {
  // In the order in which docs list them.
  constexpr std::array kFiles = {"plan.json",
                                 "preprocessing.json",
                                 "metrics.jsonl",
                                 "result.json",
                                 "events.bin",
                                 "events.jsonl",
                                 kEventFiles,
                                 "messages.bin",
                                 "weights.safetensors",
                                 "vocabulary.json",
                                 "last-snapshot.safetensors",
                                 "curves.svg",
                                 "checkpoints"};
  outputs.lossy.insert(outputs.lossy.begin(), {"metrics.jsonl", "lines", metrics_.written(),
                                               metrics_.lost(), metrics_.cause()});
  std::vector<std::string> kept;
  std::string missing;
  for (const std::string file : kFiles) {
    const auto unwritten = std::ranges::find(unwritten_, file, &UnwrittenFile::name);
    if (file == "messages.bin" && !outputs.messages) continue;
    if (file == "checkpoints" && !has_checkpoints(path(file))) continue;
    if (file == kEventFiles && has_event_files(folder_)) kept.push_back(file);
    const bool is_empty = std::ranges::any_of(outputs.lossy, [&](const LossyFile& lossy) {
      return lossy.name == file && lossy.written == 0 && lossy.lost > 0;
    });
    if (unwritten != unwritten_.end())
      missing += concat("Not kept: ", unwritten->cause, '\n');
    else if (std::error_code ignored; !is_empty && std::filesystem::exists(path(file), ignored))
      kept.push_back(file);
  }
  for (const LossyFile& lossy : outputs.lossy)
    if (lossy.lost > 0)
      missing +=
          concat("Incomplete: ", path(lossy.name), " lacks ", grouped(lossy.lost), " of ",
                 grouped(lossy.lost + lossy.written), ' ', lossy.unit, ": ", lossy.cause, '\n');
  for (const Status* written : {&outputs.messages, &outputs.tensorboard})
    if (!*written) missing += concat("Incomplete: ", written->error().text, '\n');
  return concat("Kept in ", folder_, ": ", join(kept, ", "), '\n', missing);
}

Status make_study_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Error{
        concat(folder, ": cannot be created: ", error.message(), "; give another with --out DIR")};
  for (const char* name : {"/table.txt", "/result.json", "/metrics.jsonl"})
    if (std::filesystem::exists(folder + name))
      return Error{
          concat(folder, ": already holds a run; give another with --out DIR, or remove it")};
  return {};
}

}  // namespace leeway
