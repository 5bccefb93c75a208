#pragma once
// check: verifies a table operation by operation, without knowing its schedule.
#include <vector>

#include "core/expected.hpp"
#include "policies/pipeline/play.hpp"
#include "policies/pipeline/table.hpp"

namespace leeway::pipeline {

/// The most that a stage keeps at once.
struct StageUse {
  /// Forwards without their backward for weights, over all chunks.
  int activations = 0;
  /// Backwards for inputs without their backward for weights, between two operations.
  int pending_backwards = 0;
  /// Versions of the weights, in the chunk with the most: the newest one, and older ones that later
  /// operations read.
  int versions = 1;
  /// Updates between the weights that a gradient is computed on and those that it is applied to.
  int version_lag = 0;
  bool operator==(const StageUse&) const = default;
};

struct CheckedTable {
  std::vector<StageUse> stages;
  int channel_bound = 1;  // the smallest that does not deadlock
};

/// Checks, on each stage and for each of its chunks:
///  - Each micro-batch goes forward once, and later backward once: in one operation, or with a
///    backward for inputs and then a backward for weights.
///  - A backward reads the version of its forward. The stage had made that version before the
///    forward, and it is no older than Table::version_lag.
///  - Each update comes once, after all gradients of its micro-batches and before those of later
///    ones, and makes the next version.
/// Also checks that all stages finish with channels of `channel_bound` messages (see play.hpp). The
/// error names the stage, the number of the operation, and a remedy.
Expected<CheckedTable> check(const Table& table, int channel_bound = kUnboundedChannel);

}  // namespace leeway::pipeline
