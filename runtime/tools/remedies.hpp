#pragma once
// Remedies: what would have made a run faster, simulated with its own durations.
#include <string>
#include <vector>

#include "dashboard/run_history.hpp"
#include "runtime/tools/what_if.hpp"

namespace leeway {

/// A changed run. `name` is a flag, a policy, or "worker 2 as fast as the median".
struct Remedy {
  std::string name;
  WhatIf answer;

  /// Relative gain of samples/s, compared with the simulation of the run as it was.
  double gain() const {
    return answer.changed.samples_per_second / answer.as_it_ran.samples_per_second - 1;
  }
};

/// Simulates the run of a folder with --trace: without its worst straggler, under other consistency
/// policies, with batches by speed, and with prefetch; each for itself, and only if the run can
/// have it and did not. The worst straggler is the worker that the others have waited for longest;
/// of pipelines, the stage that is slowest among its peers. Pipelines get no other balance or
/// prefetch, and a single pipeline gets nothing. With `gradients`, losses are computed, which takes
/// as long as training does. `history`: that of load_history(). Errors: as what_if().
Expected<std::vector<Remedy>> simulate_remedies(const std::string& folder, const Plan& plan,
                                                const dashboard::RunHistory& history,
                                                bool gradients = false);
/// The same with the plan and the history of the folder.
Expected<std::vector<Remedy>> simulate_remedies(const std::string& folder, bool gradients);

/// The remedy with the largest gain. Requires at least one.
const Remedy& best_of(const std::vector<Remedy>& remedies);

}  // namespace leeway
