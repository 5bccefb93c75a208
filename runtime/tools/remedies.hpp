#pragma once
// Remedies: what would have made a run faster, simulated with its own durations.
#include <optional>
#include <string>
#include <vector>

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

/// Without the culprit's slowness (if there is one), under other consistency policies, with batches
/// by speed, and with prefetch; each for itself, and only if the run did not have it. Pipelines get
/// other policies, and a stage as fast as its peers; a single pipeline gets nothing. With
/// `gradients`, losses are computed, which takes as long as training does. Errors: as what_if().
Expected<std::vector<Remedy>> simulate_remedies(const std::string& folder,
                                                std::optional<std::uint32_t> culprit,
                                                bool gradients = false);

}  // namespace leeway
