#pragma once
// 2BW: 1F1B that is never emptied, with double-buffered weights. All stages take a micro-batch
// through the same version, which is one update older than the newest could be.
//
// Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", ICML 2021, section
// 3.1: W(t+1) = W(t) - nu * grad f(W(t-1)). The paper asks for M >= S; what the argument needs is
// M >= S - 1.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// Unending, as weight_stashing, with the same bubble and activations. Micro-batches of update k go
/// through version max(0, k - 1), so every stage keeps two versions and its gradients lag by one.
/// That version has to be there when the first of them goes forward: M >= S - 1.
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
