#include "dashboard/state.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "dashboard/page_text.hpp"
#include "dashboard/sentences.hpp"

namespace leeway::dashboard {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kShownCauses = 12;
constexpr std::size_t kShownPulls = 50;

/// Short, because a state has thousands of times: 1 us exact.
double rounded(double seconds) {
  return std::round(seconds * 1e6) / 1e6;
}

const char* kind_of(const blame::Cause& cause) {
  using Kind = blame::Cause::Kind;
  switch (cause.kind) {
    case Kind::worker:
      return "worker";
    case Kind::stage_before:
    case Kind::stage_after:
      return "stage";
    case Kind::request:
    case Kind::weights:
      return "link";
    case Kind::samples:
      return "data";
    case Kind::other:
      return "other";
  }
  return "other";
}

OrderedJson json_of(const RunInfo& info, const RunHistory& run) {
  OrderedJson rows = OrderedJson::array();
  for (std::size_t row = 0; row < run.rows(); ++row)
    rows.push_back({{"name", run.name_of_row(row)}, {"workers", run.size_of_row(row)}});
  return {{"name", info.name},
          {"kind", info.kind},
          {"policy", info.policy},
          {"workers", info.workers},
          {"shards", info.shards},
          {"stages", info.stages},
          {"pipelines", info.workers / info.stages},
          {"batch", info.batch},
          {"seed", info.seed},
          {"checkers", info.checkers},
          {"has_accuracy", info.has_accuracy},
          {"has_losses", info.has_losses},
          {"has_events", info.has_events},
          {"rows", rows},
          {"can_stop", info.can_stop},
          {"can_predict", info.can_predict},
          {"keeps_operations", info.keeps_operations}};
}

OrderedJson totals_of(const RunHistory& run, const ProcessFigures& process) {
  const Progress& latest = run.latest();
  return {{"epoch", latest.epoch.value()},
          {"iterations", run.iterations()},
          {"samples", run.samples()},
          {"samples_per_second", samples_per_second(run)},
          {"push_bytes", latest.push_bytes},
          {"pull_bytes", latest.pull_bytes},
          {"plain_push_bytes", latest.plain_push_bytes},
          {"plain_pull_bytes", latest.plain_pull_bytes},
          {"stage_bytes", latest.stage_bytes},
          {"plain_stage_bytes", latest.plain_stage_bytes},
          {"memory_bytes", process.memory_bytes},
          {"peak_memory_bytes", run.peak_memory()},
          {"lost_events", process.lost_events},
          {"parked_now", latest.parked_now},
          {"parked_pulls", latest.parked_pulls},
          {"clock_gap", latest.clock_gap},
          {"max_clock_gap", latest.max_clock_gap},
          {"partial_pushes", latest.partial_pushes},
          {"malformed", latest.malformed},
          {"refused", latest.refused},
          {"live_workers", run.live_workers()},
          {"compute", rounded(run.compute())},
          {"wait", rounded(run.wait())}};
}

OrderedJson sentences_of(const RunHistory& run) {
  return {{"lost", lost_sentence(run)},         {"staleness", staleness_sentence(run)},
          {"blocked", blocked_sentence(run)},   {"leads", leads_sentence(run)},
          {"alive", alive_sentence(run)},       {"loss", loss_sentence(run)},
          {"pipeline", pipeline_sentence(run)}, {"throughput", throughput_sentence(run)}};
}

OrderedJson causes_of(const RunHistory& run) {
  std::vector<std::pair<blame::Cause, double>> causes(run.causes().begin(), run.causes().end());
  std::ranges::stable_sort(causes, std::greater<>(), [](const auto& one) { return one.second; });
  const double all = std::max(run.compute() + run.wait(), 1e-12);
  OrderedJson json = OrderedJson::array();
  for (std::size_t i = 0; i < std::min(causes.size(), kShownCauses); ++i)
    json.push_back({{"cause", run.index_of(causes[i].first)},
                    {"kind", kind_of(causes[i].first)},
                    {"seconds", rounded(causes[i].second)},
                    {"share", causes[i].second / all}});
  return json;
}

OrderedJson cause_names_of(const RunHistory& run) {
  OrderedJson json = OrderedJson::array();
  for (const blame::Cause& cause : run.known_causes()) json.push_back(name_of(cause));
  return json;
}

OrderedJson json_of(std::size_t index, const RunHistory& run) {
  const Interval& interval = run.intervals().all()[index];
  OrderedJson waits = OrderedJson::array();
  for (const auto& [key, seconds] : interval.waits)
    waits.push_back({key.first, run.index_of(key.second), rounded(seconds)});
  return {{"samples", interval.samples},
          {"iterations", interval.iterations},
          {"updates", interval.updates},
          {"compute", rounded(interval.compute)},
          {"waits", waits},
          {"lead", interval.lead},
          {"parked", interval.parked},
          {"leads", interval.leads},
          {"alive", interval.alive},
          {"taking_part", run.taking_part(index)},
          {"contributing", count_of(interval.contributing)},
          {"push_bytes", interval.push_bytes},
          {"pull_bytes", interval.pull_bytes},
          {"stage_bytes", interval.stage_bytes}};
}

OrderedJson intervals_of(const RunHistory& run, std::uint64_t since) {
  const auto& all = run.intervals().all();
  std::size_t from = 0;
  if (since >= run.intervals().widened())
    while (from < all.size() && all[from].changed <= since) ++from;
  OrderedJson list = OrderedJson::array();
  for (std::size_t i = from; i < all.size(); ++i) list.push_back(json_of(i, run));
  return {{"from", from}, {"list", list}};
}

OrderedJson blocked_of(const RunHistory& run) {
  OrderedJson json = OrderedJson::array();
  const auto pulls = run.parked();
  const WorkerId slowest = run.slowest();
  const std::string name = concat("worker ", slowest);
  for (std::size_t i = 0; i < std::min(pulls.size(), kShownPulls); ++i)
    json.push_back({{"actor", concat("worker ", pulls[i].worker)},
                    {"on", pulls[i].worker == slowest ? "its own push" : name},
                    {"seconds", rounded(std::max(run.now() - pulls[i].since, 0.0))}});
  return json;
}

OrderedJson curve_of(const std::vector<CurvePoint>& curve) {
  OrderedJson json = OrderedJson::array();
  for (const CurvePoint& point : curve)
    json.push_back({rounded(point.seconds), point.samples, point.loss, point.accuracy});
  return json;
}

OrderedJson marks_of(const RunHistory& run) {
  OrderedJson json = OrderedJson::array();
  for (const Mark& mark : run.marks())
    json.push_back({{"seconds", rounded(mark.seconds)},
                    {"kind", mark.kind},
                    {"text", without_folders(mark.text)}});
  return json;
}

OrderedJson pipeline_of(const RunHistory& run) {
  if (run.info().stages <= 1) return nullptr;
  OrderedJson operations = OrderedJson::array();
  for (const StageOperation& operation : run.operations())
    operations.push_back(operation_of(operation.computed, operation.end));
  const auto ratios = run.slowness();
  OrderedJson slowness = OrderedJson::array();
  for (std::size_t worker = 0; worker < ratios.size(); ++worker) {
    if (worker % run.info().stages == 0) slowness.push_back(OrderedJson::array());
    slowness.back().push_back(std::round(ratios[worker] * 1e3) / 1e3);
  }
  return {{"operations", operations}, {"slowness", slowness}};
}

}  // namespace

OrderedJson state_of(const RunHistory& run, const ProcessFigures& process, std::uint64_t since) {
  const bool is_whole = since == 0;
  OrderedJson json;
  if (is_whole) json["run"] = json_of(run.info(), run);
  json["now"] = rounded(run.now());
  json["ended"] = run.end() ? OrderedJson{{"reason", run.end()->reason},
                                          {"text", without_folders(run.end()->text)}}
                            : OrderedJson(nullptr);
  json["bound"] = run.bound() ? OrderedJson(*run.bound()) : OrderedJson(nullptr);
  json["totals"] = totals_of(run, process);
  json["sentences"] = sentences_of(run);
  json["causes"] = causes_of(run);
  json["width"] = run.intervals().width();
  json["intervals"] = intervals_of(run, since);
  if (is_whole || run.known_causes_changed() > since) json["cause_names"] = cause_names_of(run);
  json["leads_by_row"] = run.leads_by_row();
  json["leads_by_shard"] = run.leads_by_shard();
  json["blocked"] = blocked_of(run);
  if (is_whole || run.curves_changed() > since) {
    json["train"] = curve_of(run.train());
    json["test"] = curve_of(run.test());
  }
  if (is_whole || run.marks_changed() > since) json["marks"] = marks_of(run);
  if (is_whole || run.operations_changed() > since) json["pipeline"] = pipeline_of(run);
  if (is_whole) json["predictions"] = nullptr;
  return json;
}

OrderedJson operation_of(const event::StageComputed& computed, double end) {
  return {computed.worker.value(),
          static_cast<int>(computed.operation),
          computed.micro_batch,
          computed.chunk,
          computed.iteration.value(),
          rounded(end - computed.computed.seconds()),
          rounded(end)};
}

std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace leeway::dashboard
