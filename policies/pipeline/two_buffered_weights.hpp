#pragma once
// 2BW: 1F1B without a flush, with double-buffered weights. All stages compute a micro-batch with
// the same version, which is one update older than the newest possible one.
//
// Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021, section
// 3.1: W(t+1) = W(t) - nu * grad f(W(t-1)). The paper requires M >= S, but its
// argument only needs M >= S - 1.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// The bubble and the activations are those of weight_stashing. Micro-batches of update k use
/// version max(0, k - 1), so each stage keeps two versions and its gradients lag by one. The stage
/// must have made that version before the first forward of update k: M >= S - 1.
class TwoBufferedWeights final : public Schedule {
 public:
  std::string_view name() const override { return "2bw"; }
  bool asynchronous() const override { return true; }
  Status allows(const Spec& spec) const override;
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
  int weight_versions(const Spec&, int) const override { return 2; }
  int version_lag(const Spec&, int) const override { return 1; }
};

}  // namespace leeway::pipeline
