#pragma once
// What the optimizers share: how a push of weight w < 1 counts as a part of a step.
#include <cmath>

#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// An exponential average under a push of weight w: keeps beta^w of what it has and takes in the
/// rest.
///
/// A round is n pushes of weight 1/n. With one gradient g throughout, an average a = keep * a + (1
/// - keep) * g ends such a round where one step of weight 1 ends it, for every n, since keep^n =
/// beta.
struct Decay {
  Decay(double beta, double weight) : keep(std::pow(beta, weight)), gain(1 - keep) {}
  double keep;
  double gain;
};

/// How much of a gradient a velocity takes in: (1 - beta^w) / (1 - beta), which is 1 for w = 1, and
/// w in the limit of beta = 1.
inline double velocity_gain(double beta, double weight) {
  return beta < 1 ? (1 - std::pow(beta, weight)) / (1 - beta) : weight;
}

/// 1 - beta^progress: how much of an average that began at zero is filled; 1 before anything came.
inline double filled(double beta, double progress) {
  return progress > 0 ? 1 - std::pow(beta, progress) : 1;
}

/// Adam's step under an update of this size, where weight decay is `decay` in the gradient, or
/// shrinks the weights by `shrink` apart from it. Spec: plan::Adam or plan::AdamW.
template <class Spec>
kernels::AdamFormula adam_formula(const Spec& spec, const UpdateSize& size, double decay,
                                  double shrink) {
  const Decay first(spec.beta1, size.weight);
  const Decay second(spec.beta2, size.weight);
  const double rate = size.learning_rate * size.weight / filled(spec.beta1, size.progress);
  return {
      .rate = static_cast<float>(rate),
      .decay = static_cast<float>(decay),
      .shrink = static_cast<float>(shrink),
      .keep1 = static_cast<float>(first.keep),
      .gain1 = static_cast<float>(first.gain),
      .keep2 = static_cast<float>(second.keep),
      .gain2 = static_cast<float>(second.gain),
      .scale = static_cast<float>(1 / std::sqrt(filled(spec.beta2, size.progress))),
      .epsilon = static_cast<float>(spec.epsilon),
  };
}

}  // namespace leeway
