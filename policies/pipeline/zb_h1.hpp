#pragma once
// ZB-H1: 1F1B with a separate backward for inputs and backward for weights. The previous stage
// waits for the gradient of the inputs. No stage waits for the gradients of the weights, which fill
// the bubble.
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2.1 and figure 3, the
// handcrafted schedule. Leeway's stages update without a barrier, as in section 4 of the paper.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Stage s delays the backward for weights by s micro-batches. So each stage keeps min(M, S)
/// activations, as the first stage does with 1f1b, and min(M, s + 1) gradients. Let F, I and W be
/// the times of forward, backward for inputs and backward for weights. If M >= S and W <= min(F,
/// I), each stage idles (S - 1) * (F + I - W); if all are equal, that is a third of 1f1b's (S - 1)
/// * (F + I + W). Otherwise no closed form is known.
class ZbH1 final : public Schedule {
 public:
  std::string_view name() const override { return "zb_h1"; }
  Status allows(const Spec& spec) const override { return one_chunk(spec); }
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
  int peak_pending_backwards(const Spec& spec, int stage) const override;
};

}  // namespace leeway::pipeline
