#pragma once
// LocalOptimizer: the optimizer of a worker's local steps, with its state.
//
// The state of a worker's optimizer outlives its iterations and sessions, but not its process
// (Douillard et al., "DiLoCo", 2023, section 2).
#include <memory>
#include <vector>

#include "actors/job.hpp"

namespace leeway {

class LocalOptimizer {
 public:
  explicit LocalOptimizer(std::shared_ptr<const Job> job);

  /// Moves `weights`, by block, along `gradients`, by block. Gradients of statistics become parts
  /// of their running averages. Frozen blocks stay as they are. Weights that are shared get new
  /// blobs. `samples`: trained samples, from which the lr schedule follows. Requires weights and
  /// gradients on the device of `on`.
  void step(Executor& on, std::vector<Blob>& weights, std::vector<Blob> gradients, double samples);
  /// Floats that a step reads and writes.
  std::int64_t floats_of_step() const { return floats_of_step_; }

 private:
  void step(Executor& on, const Block& block, Blob& weights, const Blob& gradient, double rate,
            float scale);

  std::shared_ptr<const Job> job_;
  std::vector<std::vector<Blob>> state_;  // by block; empty until its first step
  double steps_ = 0;
  std::int64_t floats_of_step_ = 0;
};

}  // namespace leeway
