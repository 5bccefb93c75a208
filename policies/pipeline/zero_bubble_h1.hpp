#pragma once
// ZB-H1: 1F1B whose backward is in two halves. The gradient for the inputs goes on at once; that
// for the weights, for which nobody waits, fills what would be a bubble.
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2.3 and figure 2, the
// schedule by hand. The paper's update without a barrier between stages (section 4) is what
// Leeway's stages do anyway.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Stage s puts the gradient for the weights off by s micro-batches, so every stage keeps min(M, S)
/// activations, which is what 1f1b keeps on its first stage, and min(M, s + 1) gradients. With M >=
/// S and a part W that takes no longer than F or I, the idle time of each stage is (S - 1) * (F + I
/// - W): a third of 1f1b's, (S - 1) * (F + I + W), when all are equal. Otherwise there is no closed
/// form.
class ZeroBubbleH1 final : public Schedule {
 public:
  std::string_view name() const override { return "zero_bubble_h1"; }
  Status allows(const Spec& spec) const override { return one_chunk(spec); }
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
  int peak_open_halves(const Spec& spec, int stage) const override;
};

}  // namespace leeway::pipeline
