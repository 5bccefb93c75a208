#pragma once
// GPipe: all micro-batches forward, then all backward, then the update.
//
// Source: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline
// Parallelism", NeurIPS 2019, section 2.3 and figure 2(c). In the paper, backward takes the
// micro-batches in the opposite order. Here it takes them in the same order as 1f1b, so that both
// sum gradients in the same order and give the same bits.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Bubble (S - 1) / (M + S - 1); every stage keeps the activations of all M micro-batches.
class GPipe final : public Schedule {
 public:
  std::string_view name() const override { return "gpipe"; }
  Status allows(const Spec& spec) const override { return one_chunk(spec); }
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int) const override { return spec.micro_batches; }
};

}  // namespace leeway::pipeline
