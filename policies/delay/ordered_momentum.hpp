#pragma once
// Ordered momentum: a push changes velocity and weights as if it had been applied when its weights
// were pulled, and the velocity had carried it on since then.
// Source: Shi, Yang and Li, "Ordered Momentum for Asynchronous SGD", NeurIPS 2024, algorithm 2.
#include <cmath>

#include "policies/delay/delay_policy.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// With momentum factor b, lag l and a push of weight w:
///
///   m = b^w m,   p -= lr w (m + d g),   m += b^l c g,   with d = (1 - b^(w + l)) / (1 - b)
///
/// and c = (1 - b^w) / (1 - b) as in Momentum. If the push had come l rounds earlier, it would have
/// moved the weights by lr w d g until now, and b^l of it would be left in the velocity. The source
/// counts whole rounds of pushes of weight 1 / K; here the lag is a fraction, as the decay is.
class OrderedMomentum final : public DelayPolicy {
 public:
  explicit OrderedMomentum(double factor) : factor_(factor) {}
  std::string_view name() const override { return "ordered_momentum"; }
  std::string_view refusal(const plan::Optimizer& optimizer) const override {
    const auto* momentum = std::get_if<plan::Momentum>(&optimizer.kind);
    if (!momentum) return "it orders the velocity of momentum; give --optimizer momentum";
    return momentum->dampening == 0 ? "" : "it needs momentum without dampening; leave that out";
  }
  kernels::UpdateFormula formula(const Optimizer& optimizer,
                                 const UpdateSize& size) const override {
    kernels::UpdateFormula formula = optimizer.formula(size);
    if (size.lag == 0) return formula;
    const auto& plain = std::get<kernels::MomentumFormula>(formula);
    const double carried = velocity_gain(factor_, size.weight + size.lag);
    return kernels::OrderedMomentumFormula{
        .rate = plain.rate,
        .decay = plain.decay,
        .keep = plain.keep,
        .gain = static_cast<float>(plain.gain * std::pow(factor_, size.lag)),
        .direct = static_cast<float>(size.learning_rate * size.weight * carried)};
  }

 private:
  double factor_;
};

}  // namespace leeway
