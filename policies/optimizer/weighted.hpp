#pragma once
// Shared by the optimizers: a push of weight w < 1 as a fraction of a step.
#include <cmath>

#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// An exponential average under a push of weight w: a = keep * a + gain * g, with keep = beta^w and
/// gain = 1 - keep.
///
/// Under a constant gradient, a round of n pushes of weight 1/n gives the same average as one step
/// of weight 1, for any n, because keep^n = beta.
struct Decay {
  Decay(double beta, double weight) : keep(std::pow(beta, weight)), gain(1 - keep) {}
  double keep;
  double gain;
};

/// The factor of a gradient in a velocity: (1 - beta^w) / (1 - beta), which is 1 for w = 1. For
/// beta = 1 it is the limit, w.
inline double velocity_gain(double beta, double weight) {
  return beta < 1 ? (1 - std::pow(beta, weight)) / (1 - beta) : weight;
}

/// The whole intervals, of a number of rounds each, until a sum of push weights. Sums of weights
/// such as 1/7 are rounded.
inline double intervals_until(double progress, double interval) {
  constexpr double kRounding = 1e-6;
  return std::floor((progress + kRounding) / interval);
}

/// Adam's correction of an average that starts at zero: 1 - beta^progress; 1 before the first push.
inline double bias_correction(double beta, double progress) {
  return progress > 0 ? 1 - std::pow(beta, progress) : 1;
}

/// Optimizer::look_ahead() of a velocity: p -= lr rounds m.
inline kernels::UpdateFormula velocity_look_ahead(const UpdateSize& size, double rounds) {
  return kernels::MomentumFormula{
      .rate = static_cast<float>(size.learning_rate * rounds), .decay = 0, .keep = 1, .gain = 0};
}

/// Optimizer::look_ahead() of Adam: p -= lr rounds m^ / (sqrt(v^) + epsilon), also for amsgrad.
template <class Spec>
kernels::UpdateFormula adam_look_ahead(const Spec& spec, const UpdateSize& size, double rounds) {
  const double rate = size.learning_rate * rounds / bias_correction(spec.beta1, size.progress);
  const kernels::AdamFormula adam{
      .rate = static_cast<float>(rate),
      .decay = 0,
      .shrink = 1,
      .keep1 = 1,
      .gain1 = 0,
      .keep2 = 1,
      .gain2 = 0,
      .scale = static_cast<float>(1 / std::sqrt(bias_correction(spec.beta2, size.progress))),
      .epsilon = static_cast<float>(spec.epsilon),
  };
  if (!spec.amsgrad) return adam;
  return kernels::AmsGradFormula{adam};
}

/// Adam's step under an update of this size. `decay`: weight decay as part of the gradient;
/// `shrink`: factor on the weights for decoupled decay. Spec: plan::Adam or plan::AdamW.
template <class Spec>
kernels::UpdateFormula adam_formula(const Spec& spec, const UpdateSize& size, double decay,
                                    double shrink) {
  const Decay first(spec.beta1, size.weight);
  const Decay second(spec.beta2, size.weight);
  const double rate = size.learning_rate * size.weight / bias_correction(spec.beta1, size.progress);
  const kernels::AdamFormula adam{
      .rate = static_cast<float>(rate),
      .decay = static_cast<float>(decay),
      .shrink = static_cast<float>(shrink),
      .keep1 = static_cast<float>(first.keep),
      .gain1 = static_cast<float>(first.gain),
      .keep2 = static_cast<float>(second.keep),
      .gain2 = static_cast<float>(second.gain),
      .scale = static_cast<float>(1 / std::sqrt(bias_correction(spec.beta2, size.progress))),
      .epsilon = static_cast<float>(spec.epsilon),
  };
  if (!spec.amsgrad) return adam;
  return kernels::AmsGradFormula{adam};
}

}  // namespace leeway
