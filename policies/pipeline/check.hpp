#pragma once
// check: what a table promises, looked at operation by operation, without knowing its schedule.
#include <vector>

#include "core/expected.hpp"
#include "policies/pipeline/play.hpp"
#include "policies/pipeline/table.hpp"

namespace leeway::pipeline {

/// What a stage keeps, at the worst moment of its table.
struct StageUse {
  /// Forwards whose gradient for the weights is not done, all chunks added up.
  int activations = 0;
  /// Backwards for the inputs whose half for the weights is not done, between two operations.
  int open_halves = 0;
  /// Weights of the chunk with most: the newest, and each older one that an operation still reads.
  int versions = 1;
  /// Updates between the weights that a gradient was computed on and those that it is applied to.
  int version_lag = 0;
  bool operator==(const StageUse&) const = default;
};

struct CheckedTable {
  std::vector<StageUse> stages;
  int channel_bound = 1;  // the least that does
};

/// Whether, on every stage and for each of its chunks,
///  - each micro-batch goes forward once, and after that backward once, as a whole or in halves,
///    that for the inputs first;
///  - a backward reads the version that its forward has read, which the stage had made by then, and
///    which is no older than the table promises;
///  - each update comes once, after all gradients of its micro-batches and before any of later
///    ones, and makes the next version;
/// and whether all stages together come to their end with channels of `channel_bound` messages (see
/// play.hpp). The error names the stage, the operation by its number, and what would be right.
Expected<CheckedTable> check(const Table& table, int channel_bound = kUnboundedChannel);

}  // namespace leeway::pipeline
