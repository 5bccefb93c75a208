#pragma once
// 1F1B: a stage begins with one forward per later stage, and then alternates forward and backward.
//
// Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021, section
// 3.2 (PipeDream-Flush); Fan et al., "DAPPLE: A Pipelined Data Parallel Approach for Training Large
// Models", PPoPP 2021, section 3 (early backward).
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Bubble (S - 1) / (M + S - 1), as for gpipe; stage s keeps the activations of min(M, S - s)
/// micro-batches.
class OneForwardOneBackward final : public Schedule {
 public:
  std::string_view name() const override { return "1f1b"; }
  Status allows(const Spec& spec) const override { return one_chunk(spec); }
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
};

}  // namespace leeway::pipeline
