#pragma once
// Momentum: SGD with a velocity (Polyak 1964).
#include <algorithm>
#include <cmath>

#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// m = beta^w m + c d (g + lambda p), p -= lr w m, with c = (1 - beta^w) / (1 - beta), and d = 1 -
/// dampening; d = 1 in the first step.
///
/// With w = 1, c = 1 and this is PyTorch's SGD with momentum. In a round of n pushes of weight 1/n,
/// m decays by beta in total and adds as much of the gradient as in one step. Under a constant
/// gradient, m tends to g / (1 - beta) for any n, and a round moves p by lr times that. (With m =
/// beta^w m + w g the limit would be smaller, by 5% for beta = 0.9 and many workers.)
class Momentum final : public Optimizer {
 public:
  Momentum(const plan::Momentum& spec, double weight_decay)
      : factor_(spec.factor), dampening_(spec.dampening), decay_(weight_decay) {}
  std::string_view name() const override { return "momentum"; }
  int slots() const override { return 1; }  // m
  bool has_velocity() const override { return true; }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    return kernels::MomentumFormula{
        .rate = static_cast<float>(size.learning_rate * size.weight),
        .decay = static_cast<float>(decay_ * size.decay),
        .keep = static_cast<float>(std::pow(factor_, size.weight)),
        .gain =
            static_cast<float>(velocity_gain(factor_, size.weight) * undamped(size) * size.gain),
    };
  }
  std::optional<kernels::UpdateFormula> look_ahead(const UpdateSize& size,
                                                   double rounds) const override {
    return velocity_look_ahead(size, rounds);
  }

 private:
  /// The share of the gradient that enters the velocity. A push that ends beyond the first step
  /// counts as first with the share of its weight that belongs to that step.
  double undamped(const UpdateSize& size) const {
    if (dampening_ == 0) return 1;
    const double before = size.progress - size.weight;
    const double first = size.weight > 0 ? std::clamp((1 - before) / size.weight, 0.0, 1.0) : 0;
    return 1 - dampening_ * (1 - first);
  }

  double factor_;
  double dampening_;
  double decay_;
};

}  // namespace leeway
