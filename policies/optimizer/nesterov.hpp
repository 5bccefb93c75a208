#pragma once
// Nesterov: SGD with a velocity that looks one step ahead (Nesterov 1983; Sutskever et al., ICML
// 2013, section 2).
#include <cmath>

#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// m = beta^w m + u, p -= lr w (u + beta^w m), with u = c (g + lambda p) and c = (1 - beta^w) / (1
/// - beta).
///
/// With w = 1 this is PyTorch's SGD with nesterov=True. Under a constant gradient, a round moves p
/// by lr g / (1 - beta) for any number of pushes, as with momentum.
class Nesterov final : public Optimizer {
 public:
  Nesterov(const plan::Nesterov& spec, double weight_decay)
      : factor_(spec.factor), decay_(weight_decay) {}
  std::string_view name() const override { return "nesterov"; }
  int slots() const override { return 1; }  // m
  bool has_velocity() const override { return true; }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    return kernels::NesterovFormula{
        .rate = static_cast<float>(size.learning_rate * size.weight),
        .decay = static_cast<float>(decay_ * size.decay),
        .keep = static_cast<float>(std::pow(factor_, size.weight)),
        .gain = static_cast<float>(velocity_gain(factor_, size.weight) * size.gain),
    };
  }
  std::optional<kernels::UpdateFormula> look_ahead(const UpdateSize& size,
                                                   double rounds) const override {
    return velocity_look_ahead(size, rounds);
  }

 private:
  double factor_;
  double decay_;
};

}  // namespace leeway
