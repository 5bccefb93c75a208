#pragma once
// Slowdown: how much longer the steps of a job take because of stragglers, and which ranks, stages
// and kinds of operations explain it (Lin et al., OSDI 2025, section 3).
//
// Without stragglers, an operation of one rank takes the mean of its kind over all ranks and steps,
// and an operation of several ranks the median of its kind, without waiting for peers. Each
// question replaces the durations of some operations so and replays all steps.
#include <string>
#include <utility>
#include <vector>

#include "blame/operation_trace.hpp"

namespace leeway::blame {

/// A share of the lost time from which on a cause explains it.
inline constexpr double kExplains = 0.5;

/// Mean seconds of a step.
struct Slowdown {
  std::size_t steps = 0;
  double measured = 0;            // from the first start to the last end
  double replayed = 0;            // with the durations as measured
  double without_stragglers = 0;  // with all durations replaced
  /// Only the durations of this rank are as measured. In the order of ranks.
  std::vector<std::pair<Rank, double>> only_rank;
  /// Only the durations of this stage or kind are replaced.
  std::vector<double> without_stage, without_kind;
  /// The ranks with the largest `only_rank`, 3% of all, rounded up, and the time without them.
  std::vector<Rank> slowest;
  double without_slowest = 0;

  /// The slowdown S.
  double factor() const { return replayed / without_stragglers; }
  /// The share of the lost time that is gone in this time; 0 if nothing is lost.
  double share(double seconds) const;
};

/// Errors: the trace cannot be replayed, or its operations take no time.
Expected<Slowdown> find_slowdown(const OperationTrace& trace);

/// One or two sentences about the cause of the slowdown and its remedy.
std::string explain(const Slowdown& slowdown, const OperationTrace& trace);

}  // namespace leeway::blame
