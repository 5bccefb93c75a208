#pragma once
// NAdam: Adam that looks one step ahead along its momentum (Dozat, "Incorporating Nesterov Momentum
// into Adam", ICLR 2016 workshop). Momentum factors up to 0.99 work with it, which also makes
// delayed gradients harmless in unflushed pipelines (Ajanthan et al., ICML 2025).
#include <algorithm>
#include <cmath>

#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// Moments m and v as Adam's. With the momentum schedule u(t) = beta1 (1 - 0.96^(t decay) / 2), its
/// product P(t) = u(1) ... u(t), and progress t after a push of weight w,
///
///   p -= lr w ((1 - u(t)^w) / (1 - P(t)) g' + u(t + w)^w / (1 - P(t + w)) m) / (sqrt(v') +
///   epsilon)
///
/// where v' = v / (1 - beta2^t). With w = 1 this is PyTorch's NAdam, by default with
/// decoupled_weight_decay. Between whole steps, P is interpolated by its factors.
class NAdam final : public Optimizer {
 public:
  NAdam(const plan::NAdam& spec, double weight_decay) : spec_(spec), decay_(weight_decay) {}
  std::string_view name() const override { return "nadam"; }
  int slots() const override { return 2; }  // m, v
  StateRange state_range(int slot) const override {
    return slot == 0 ? StateRange::any : StateRange::not_negative;
  }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    const Decay first(spec_.beta1, size.weight), second(spec_.beta2, size.weight);
    const double step = size.learning_rate * size.weight, decay = decay_ * size.decay;
    const double now = size.progress, next = now + size.weight;
    const double of_gradient = corrected(1 - std::pow(factor(now), size.weight), now);
    const double of_moment = corrected(std::pow(factor(next), size.weight), next);
    return kernels::NAdamFormula{
        .gradient_rate = static_cast<float>(step * of_gradient),
        .moment_rate = static_cast<float>(step * of_moment),
        .decay = static_cast<float>(spec_.decoupled ? 0 : decay),
        .shrink = static_cast<float>(spec_.decoupled ? 1 - step * decay : 1),
        .keep1 = static_cast<float>(first.keep),
        .gain1 = static_cast<float>(first.gain),
        .keep2 = static_cast<float>(second.keep),
        .gain2 = static_cast<float>(second.gain),
        .scale = static_cast<float>(1 / std::sqrt(bias_correction(spec_.beta2, now))),
        .epsilon = static_cast<float>(spec_.epsilon),
    };
  }

 private:
  double factor(double t) const {
    return spec_.beta1 * (1 - 0.5 * std::pow(0.96, t * spec_.momentum_decay));
  }
  /// share / (1 - P(t)); 0 before the first push.
  double corrected(double share, double t) const { return t > 0 ? share / (1 - product(t)) : 0; }
  double product(double t) const {
    double product = 1;
    for (double done = 0; done < t && product > 1e-18; ++done)
      product *= std::pow(factor(done + 1), std::min(1.0, t - done));
    return product;
  }

  plan::NAdam spec_;
  double decay_;
};

}  // namespace leeway
