#pragma once
// Checks of a simulated run. None holds for a run that has failed or was refused.
#include <string>
#include <vector>

#include "testing/simulate.hpp"

namespace leeway {

/// The run ended well: no error, no violation and, if it is strict, every straggler and fault had
/// an effect.
Verdict ended_well(const SimulatedRun& run);

/// Every straggler and fault of the plan had an effect. Implied by a strict run.
Verdict all_had_effect(const SimulatedRun& run);

/// No sample was trained twice in an epoch, and none is missing from the epochs that the plan asks
/// for. Without a limit of epochs: all samples that were trained are reported.
Verdict trained_exactly_once(const SimulatedRun& run);

/// The share of their time that the other workers waited for this one: with a parked pull that its
/// push, admission or removal permitted. From 0 to 1: see _percent.
Measured waited_for(const SimulatedRun& run, Address worker);

/// The share of its time that this worker was without weights, from 0 to 1.
Measured waited(const SimulatedRun& run, Address worker);

/// The largest difference between a clock and the smallest clock; at most the staleness bound + 1.
Measured max_clock_gap(const SimulatedRun& run);

/// The version lags of the pushed buckets.
class Lags {
 public:
  explicit Lags(const SimulatedRun& run);
  Measured max() const;
  Measured median() const { return quantile(0.5); }
  /// The lag that this share of the pushes does not exceed.
  Measured quantile(double share) const;
  /// Number of pushes with this lag; the last of the 64 bins counts all larger ones.
  Measured count(std::size_t lag) const;

 private:
  std::vector<std::uint64_t> bins_;
  std::string failure_;
};
Lags lags(const SimulatedRun& run);

}  // namespace leeway
