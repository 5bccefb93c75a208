#pragma once
// Gap-aware: each element of a gradient is divided by the distance that its weight has moved since
// the pull, counted in usual steps, plus 1.
// Source: Barkai, Hakimi and Schuster, "Gap Aware Mitigation of Gradient Staleness", ICLR 2020,
// section 4.
#include <cmath>

#include "policies/delay/delay_policy.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// g / (|w - pulled| / C + 1), where the usual step C is the largest learning rate times the root
/// of the running mean of v^2, v being the velocity or without momentum the gradient. The mean
/// begins at 0, and is corrected for that as Adam's are. Weight decay, which uses the present
/// weights, is not divided.
class GapAware final : public DelayPolicy {
 public:
  explicit GapAware(const plan::GapAware& spec) : decay_(spec.decay) {}
  std::string_view name() const override { return "gap_aware"; }
  std::string_view refusal(const plan::Optimizer& optimizer) const override {
    const bool knows_step = std::holds_alternative<plan::Sgd>(optimizer.kind) ||
                            std::holds_alternative<plan::Momentum>(optimizer.kind) ||
                            std::holds_alternative<plan::Nesterov>(optimizer.kind);
    return knows_step ? ""
                      : "it knows the usual step of sgd, momentum and nesterov only; give one "
                        "of them, or --delay-policy lag_scaled";
  }
  bool compares_weights() const override { return true; }
  int slots() const override { return 1; }  // the mean of v^2
  std::optional<kernels::DelayFormula> correction(const UpdateSize& size) const override {
    if (size.largest_rate == 0) return std::nullopt;  // the weights do not move
    constexpr double kEpsilon = 1e-8;                 // of the root, in the authors' program
    const Decay mean(decay_, size.weight);
    const double root = std::sqrt(bias_correction(decay_, size.progress));
    return kernels::GapFormula{.keep = static_cast<float>(mean.keep),
                               .gain = static_cast<float>(mean.gain),
                               .scale = static_cast<float>(size.largest_rate / root),
                               .least = static_cast<float>(size.largest_rate * kEpsilon)};
  }

 private:
  double decay_;
};

}  // namespace leeway
