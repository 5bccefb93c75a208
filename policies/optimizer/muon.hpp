#pragma once
// Muon: steps along the orthogonalised momentum of weight matrices, and AdamW for the rest.
// Sources: Jordan, Jin, Boza, You, Cesista, Newhouse and Bernstein, "Muon: An optimizer for hidden
// layers in neural networks", 2024; the size of a step and the weight decay: Liu et al., "Muon is
// Scalable for LLM Training", 2025, section 2.2.
#include "policies/optimizer/adamw.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// m = beta^w m + u, p -= lr w (0.2 sqrt(max(rows, columns)) O + lambda p), with u = c g as in
/// Nesterov, and O the orthogonalised u + beta^w m. The factor of O makes the root of the mean
/// square of a step that of AdamW, so that both take the same learning rate. A matrix that a layout
/// divides by rows is orthogonalised piece by piece. Runs on CPUs.
class Muon final : public Optimizer {
 public:
  Muon(const plan::Muon& spec, double weight_decay)
      : factor_(spec.factor),
        decay_(weight_decay),
        adamw_({.beta1 = spec.beta1, .beta2 = spec.beta2, .epsilon = spec.epsilon}, weight_decay) {}
  std::string_view name() const override { return "muon"; }
  int slots() const override { return 2; }  // m; for the rest m and v of AdamW
  StateRange state_range(int slot) const override { return adamw_.state_range(slot); }
  /// Of parameters that are no matrices.
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    return adamw_.formula(size);
  }
  void update(Executor& on, const kernels::UpdateBuffers& buffers,
              const UpdateSize& size) const override;

 private:
  double factor_;
  double decay_;
  AdamW adamw_;
};

}  // namespace leeway
