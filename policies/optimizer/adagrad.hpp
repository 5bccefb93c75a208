#pragma once
// AdaGrad: steps scaled by all squared gradients so far (Duchi, Hazan, Singer, JMLR 2011).
#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// s += w g'^2, p -= lr w g' / (sqrt(s) + epsilon), with g' = g + lambda p. s starts as `initial`.
/// With w = 1 this is PyTorch's Adagrad. Under a constant gradient, a round of n pushes of weight
/// 1/n adds g^2 to s, as one step does.
class AdaGrad final : public Optimizer {
 public:
  AdaGrad(const plan::AdaGrad& spec, double weight_decay) : spec_(spec), decay_(weight_decay) {}
  std::string_view name() const override { return "adagrad"; }
  int slots() const override { return 1; }  // s
  float initial_state(int) const override { return static_cast<float>(spec_.initial); }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    return kernels::AdaGradFormula{
        .rate = static_cast<float>(size.learning_rate * size.weight),
        .decay = static_cast<float>(decay_ * size.decay),
        .weight = static_cast<float>(size.weight),
        .epsilon = static_cast<float>(spec_.epsilon),
    };
  }

 private:
  plan::AdaGrad spec_;
  double decay_;
};

}  // namespace leeway
