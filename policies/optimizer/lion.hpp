#pragma once
// Lion: steps of one size along the sign of a momentum (Chen et al., "Symbolic Discovery of
// Optimization Algorithms", NeurIPS 2023, algorithm 2).
#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// p -= lr w (sign(beta1 m + (1 - beta1) g) + lambda p), m = beta2^w m + (1 - beta2^w) g. Weight
/// decay is decoupled from the gradient. With w = 1 this is the textbook's.
class Lion final : public Optimizer {
 public:
  Lion(const plan::Lion& spec, double weight_decay) : spec_(spec), decay_(weight_decay) {}
  std::string_view name() const override { return "lion"; }
  int slots() const override { return 1; }  // m
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    const Decay momentum(spec_.beta2, size.weight);
    const double step = size.learning_rate * size.weight;
    return kernels::LionFormula{
        .rate = static_cast<float>(step),
        .shrink = static_cast<float>(1 - step * decay_ * size.decay),
        .mix = static_cast<float>(spec_.beta1),
        .keep = static_cast<float>(momentum.keep),
        .gain = static_cast<float>(momentum.gain),
    };
  }

 private:
  plan::Lion spec_;
  double decay_;
};

}  // namespace leeway
