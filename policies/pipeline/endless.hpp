#pragma once
// endless: a stage's part in a schedule that goes on for as long as there is data.
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// A stage does `first` once, then `again` as often as it likes, then `last`, which empties the
/// pipeline. The operations of `again` are those of its first time; the n-th time (from 0) adds n *
/// Spec::micro_batches to their micro-batches and n to their versions. So does `last`, where n is
/// how often `again` was done. All stages of a pipeline do it equally often.
///
/// Where every update empties the pipeline (no asynchronous schedule), `again` is the whole table
/// of one update, and the others are empty.
struct Endless {
  std::vector<Op> first, again, last;
  int updates = 0;  // in `first` and `last` together

  /// All that a stage does when it does `again` so often: the same as the table with
  /// Spec::updates = updates + times.
  std::vector<Op> played(int micro_batches, int times) const;
};

/// Op `op` of the n-th time.
Op later(Op op, int micro_batches, int times);

/// Requires a spec that validate() accepts; its `updates` do not matter.
Endless endless(const Spec& spec, int stage);

}  // namespace leeway::pipeline
