#pragma once
// Replay: computations of simulated workers or stages that take as long as measured ones.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// A world in which computations take the time that they were measured to take, and nothing else
/// takes time.
plan::World replay_world();

class Replay {
 public:
  /// `per_sample`: by worker of the simulated plan, the seconds per sample of its iterations, in
  /// order. Errors: the plan is not valid, or times differ by more than a straggler may.
  static Expected<Replay> of(const Plan& plan, const std::vector<std::vector<double>>& per_sample);

  /// Gives the workers of a plan the measured times, again and again. The plan may differ from that
  /// of the measured run, but has its world. Workers beyond the measured ones repeat the times of
  /// others, and those of `without_stragglers` take the times of the median worker, of those of the
  /// same stage if there are several pipelines. Updates take next to no time.
  void apply(Plan& plan, const std::vector<std::uint32_t>& without_stragglers = {}) const;

 private:
  std::size_t median_like(std::size_t worker) const;

  std::size_t stages_ = 1;
  double faster_ = 1;                         // than the world of the plan
  std::vector<std::vector<double>> factors_;  // by worker, of its usual time in that faster world
};

}  // namespace leeway
