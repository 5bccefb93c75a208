#pragma once
// Delay-adaptive learning rates: the product of rate and lag has a limit, so that the largest lag
// does not have to be known.
// Sources: Mishchenko, Bach, Even and Woodworth, "Asynchronous SGD Beats Minibatch SGD Under
// Arbitrary Delays", NeurIPS 2022; Koloskova, Stich and Jaggi, "Sharper Convergence Guarantees for
// Asynchronous SGD for Distributed and Federated Learning", NeurIPS 2022.
#include "policies/delay/delay_policy.hpp"

namespace leeway {

/// min(rate, most / lag) instead of the learning rate
class DelayAdaptive final : public DelayPolicy {
 public:
  explicit DelayAdaptive(const plan::DelayAdaptive& spec) : most_(spec.most) {}
  std::string_view name() const override { return "delay_adaptive"; }
  double step_factor(const UpdateSize& size) const override {
    const double product = size.learning_rate * size.lag;
    return product > most_ ? most_ / product : 1;
  }

 private:
  double most_;
};

}  // namespace leeway
