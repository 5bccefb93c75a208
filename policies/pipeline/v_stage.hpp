#pragma once
// VStage: writes the operations of a stage that has two chunks in a V, phase by phase.
#include <initializer_list>
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// The operations of the first update. Each kind of operation takes the micro-batches of a chunk in
/// ascending order, so a phase names only kinds and chunks.
class VStage {
 public:
  struct Step {
    OpKind kind{};
    int chunk = 0;
  };

  /// Phases may go on for more micro-batches than the update has; those are left out.
  explicit VStage(const Spec& spec) : micro_batches_(spec.micro_batches) {}

  void add(Step step) {
    const bool whole = step.kind == OpKind::backward;
    const int micro_batch = next(whole ? OpKind::backward_input : step.kind, step.chunk)++;
    if (whole) ++next(OpKind::backward_weights, step.chunk);
    if (micro_batch < micro_batches_) ops_.push_back({step.kind, micro_batch, step.chunk});
  }
  void repeat(int times, std::initializer_list<Step> steps) {
    for (int i = 0; i < times; ++i)
      for (const Step step : steps) add(step);
  }
  const std::vector<Op>& ops() const { return ops_; }

 private:
  /// The next micro-batch for forward, backward_input or backward_weights.
  int& next(OpKind kind, int chunk) { return next_[static_cast<int>(kind)][chunk]; }

  int micro_batches_;
  int next_[3][2]{};
  std::vector<Op> ops_;
};

}  // namespace leeway::pipeline
