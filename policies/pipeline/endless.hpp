#pragma once
// endless: a stage's operations in a schedule that runs as long as there are samples.
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// A stage does `first` once, then `again` any number of times, then `last`, which empties the
/// pipeline. The n-th repetition of `again` (from 0) adds n * Spec::micro_batches to the
/// micro-batches and n to the versions. `last` adds the same, with n the number of repetitions.
/// All stages of a pipeline repeat `again` equally often.
///
/// For a flushed schedule, `again` is the whole table of one update, and the others are empty.
struct Endless {
  std::vector<Op> first, again, last;
  int updates = 0;  // in `first` and `last` together

  /// All operations with `times` repetitions: the table with Spec::updates = updates + times.
  std::vector<Op> played(int micro_batches, int times) const;
};

/// Operation `op` in repetition `times`.
Op later(Op op, int micro_batches, int times);

/// Requires a spec that validate() accepts; ignores its `updates`.
Endless endless(const Spec& spec, int stage);

}  // namespace leeway::pipeline
