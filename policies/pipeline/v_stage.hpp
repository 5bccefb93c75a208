#pragma once
// VStage: writes the operations of a stage that has two chunks in a V, phase by phase.
#include <initializer_list>
#include <utility>
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// The operations of one update. Each kind of operation takes the micro-batches of a chunk in
/// ascending order, so a phase names only kinds and chunks.
class VStage {
 public:
  struct Step {
    OpKind kind{};
    int chunk = 0;
  };

  /// Phases may go on for more micro-batches than the update has; those are left out.
  VStage(const Spec& spec, int version)
      : micro_batches_(spec.micro_batches), first_(version * micro_batches_), version_(version) {}

  void add(Step step) {
    const bool whole = step.kind == OpKind::backward;
    const int micro_batch = next(whole ? OpKind::backward_input : step.kind, step.chunk)++;
    if (whole) ++next(OpKind::backward_weights, step.chunk);
    if (micro_batch < micro_batches_)
      ops_.push_back({step.kind, first_ + micro_batch, step.chunk, version_});
  }
  void repeat(int times, std::initializer_list<Step> steps) {
    for (int i = 0; i < times; ++i)
      for (const Step step : steps) add(step);
  }
  /// Both chunks make the next version. Moves out all operations.
  std::vector<Op> update() {
    for (const int chunk : {0, 1})
      ops_.push_back({OpKind::update, first_ + micro_batches_ - 1, chunk, version_ + 1});
    return std::move(ops_);
  }

 private:
  /// The next micro-batch for forward, backward_input or backward_weights.
  int& next(OpKind kind, int chunk) { return next_[static_cast<int>(kind)][chunk]; }

  int micro_batches_, first_, version_;
  int next_[3][2]{};
  std::vector<Op> ops_;
};

}  // namespace leeway::pipeline
