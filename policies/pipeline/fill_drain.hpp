#pragma once
// Fill-drain: all micro-batches forward, then all backward, then the update.
//
// Source: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline
// Parallelism", NeurIPS 2019, section 2.3 and figure 2(c). The paper takes the micro-batches
// backward in the opposite order, here they come in the same one: gradients are then added up in
// the order in which 1f1b adds them, so that both give the same bits.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Bubble (S - 1) / (M + S - 1); every stage keeps the activations of all M micro-batches.
class FillDrain final : public Schedule {
 public:
  std::string_view name() const override { return "fill_drain"; }
  Status allows(const Spec& spec) const override { return one_chunk(spec); }
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int) const override { return spec.micro_batches; }
};

}  // namespace leeway::pipeline
