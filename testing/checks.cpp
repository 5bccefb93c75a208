#include "testing/checks.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text.hpp"
#include "monitoring/summary.hpp"

namespace leeway {
namespace {

/// Positions of an epoch that a worker has trained.
struct TrainedRange {
  std::int64_t begin = 0, end = 0;
  WorkerId worker;
  bool operator<(const TrainedRange& other) const { return begin < other.begin; }
};
using TrainedRanges = std::map<std::int64_t, std::vector<TrainedRange>>;  // by epoch

TrainedRanges trained_ranges(const SimulatedRun& run) {
  TrainedRanges ranges;
  for (const SeenEvent& one : run.seen)
    if (const auto* trained = one.event.as<event::Trained>())
      ranges[trained->epoch.value()].push_back({trained->begin, trained->end, trained->worker});
  for (auto& [epoch, all] : ranges) std::sort(all.begin(), all.end());
  return ranges;
}

/// Empty if no sample of the epoch was trained twice.
std::string repeated_in(std::int64_t epoch, const std::vector<TrainedRange>& ranges) {
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const auto &before = ranges[i - 1], &one = ranges[i];
    if (one.begin < before.end)
      return concat("samples ", one.begin, " to ", std::min(one.end, before.end) - 1, " of epoch ",
                    epoch, " were trained by worker ", before.worker, " and by worker ",
                    one.worker);
  }
  return "";
}

/// Empty if no sample of a whole epoch is missing. Requires that none was trained twice.
std::string missing_in(std::int64_t epoch, const std::vector<TrainedRange>& ranges,
                       std::int64_t size) {
  std::int64_t next = 0;
  for (const TrainedRange& one : ranges) {
    if (one.begin > next) break;
    next = one.end;
  }
  if (next == size) return "";
  return concat("sample ", next, " of epoch ", epoch, " was not trained");
}

Measured share_of_time(const SimulatedRun& run, Duration part, Duration all, std::string what) {
  const double share = all > Duration{} ? part.seconds() / all.seconds() : 0;
  return {share, std::move(what), failure_of(run)};
}

/// Why the run has no such worker; else why it failed; empty if it did not.
std::string failure_for(const SimulatedRun& run, Address worker) {
  if (auto failure = failure_of(run); !failure.empty()) return failure;
  const bool known = worker.kind == RoleKind::worker && worker.index < run.totals.workers.size();
  if (known) return "";
  return concat("the run has no ", worker, "; give a worker from 0 to ",
                static_cast<std::int64_t>(run.totals.workers.size()) - 1);
}

}  // namespace

Verdict ended_well(const SimulatedRun& run) {
  return {run.ok(), run.ok() ? "the run ended well" : failure_of(run)};
}

Verdict all_had_effect(const SimulatedRun& run) {
  if (const auto failure = failure_of(run); !failure.empty()) return {false, failure};
  if (run.warnings.empty()) return {true, "every straggler and fault had an effect"};
  return {false, join(run.warnings, "; ")};
}

Verdict trained_exactly_once(const SimulatedRun& run) {
  if (const auto failure = failure_of(run); !failure.empty()) return {false, failure};
  const auto size = static_cast<std::int64_t>(run.train_samples);
  const auto ranges = trained_ranges(run);
  std::int64_t samples = 0;
  for (const auto& [epoch, all] : ranges) {
    if (const auto wrong = repeated_in(epoch, all); !wrong.empty()) return {false, wrong};
    for (const TrainedRange& one : all) samples += one.end - one.begin;
  }
  const auto& stop = run.plan.stop;
  using Reason = msg::RunEnded::Reason;
  const bool by_epochs = stop.epochs > 0 && stop.iterations == 0 && stop.seconds == 0 &&
                         run.totals.end.reason == Reason::finished;
  if (by_epochs)
    for (std::int64_t epoch = 0; epoch < static_cast<std::int64_t>(stop.epochs); ++epoch) {
      const auto found = ranges.find(epoch);
      const auto wrong = missing_in(
          epoch, found == ranges.end() ? std::vector<TrainedRange>() : found->second, size);
      if (!wrong.empty()) return {false, wrong};
    }
  const auto expected = by_epochs ? std::llround(stop.epochs * static_cast<double>(size))
                                  : static_cast<long long>(run.samples_trained);
  if (samples != expected) return {false, concat(samples, " samples were trained, not ", expected)};
  return {true, concat("all ", samples, " samples were trained once")};
}

Measured waited_for(const SimulatedRun& run, Address worker) {
  const std::string what = concat("share of their time that the others waited for ", worker);
  if (auto failure = failure_for(run, worker); !failure.empty()) return {0, what, failure};
  Duration waits, all;
  for (const auto& wait : run.totals.waits)
    if (address_of(wait.for_worker) == worker) waits += wait.time;
  for (std::size_t other = 0; other < run.totals.workers.size(); ++other)
    if (other != worker.index)
      all += run.totals.workers[other].compute + run.totals.workers[other].wait;
  return share_of_time(run, waits, all, what);
}

Measured waited(const SimulatedRun& run, Address worker) {
  const std::string what = concat("share of its time that ", worker, " waited");
  if (auto failure = failure_for(run, worker); !failure.empty()) return {0, what, failure};
  const auto& row = run.totals.workers[worker.index];
  return share_of_time(run, row.wait, row.compute + row.wait, what);
}

Measured max_clock_gap(const SimulatedRun& run) {
  return {static_cast<double>(run.max_clock_gap), "the largest clock gap", failure_of(run)};
}

Lags::Lags(const SimulatedRun& run) : bins_(run.totals.version_lags), failure_(failure_of(run)) {}

Measured Lags::max() const {
  std::size_t largest = 0;
  for (std::size_t lag = 0; lag < bins_.size(); ++lag)
    if (bins_[lag] > 0) largest = lag;
  return {static_cast<double>(largest), "the largest version lag", failure_};
}

Measured Lags::quantile(double share) const {
  return {static_cast<double>(lag_quantile(bins_, share)),
          concat("the version lag that ", share * 100, "% of the pushes do not exceed"), failure_};
}

Measured Lags::count(std::size_t lag) const {
  const std::uint64_t pushes = lag < bins_.size() ? bins_[lag] : 0;
  return {static_cast<double>(pushes), concat("number of pushes with version lag ", lag), failure_};
}

Lags lags(const SimulatedRun& run) {
  return Lags(run);
}

}  // namespace leeway
