#pragma once
// Crash trials: a run on a simulated disk that loses power, and is resumed from its checkpoints.
#include "sim/search/trial.hpp"

namespace leeway::sim {

/// Runs the plan three times, all under all checkers and with checkpoints: to its end; until the
/// power fails, during an operation of the disk or at any other time; and from the latest
/// checkpoint that is left to the end. The power may fail more than once. Half of the resumed runs
/// have other numbers of workers and shards or another policy.
///
/// Afterwards:
/// - no checkpoint was lost that the run had reported, and all that are visible are complete;
/// - the resumed run ends well and trains each sample that the checkpoint lacks once;
/// - under bsp, with the same settings and workers, its weights equal those of the first run to the
///   bit.
///
/// The plan, with its seed, determines the trial.
Trial try_crashes(const Plan& plan, const MakeJob& make);

}  // namespace leeway::sim
