#pragma once
// Delay compensation: a gradient on the present weights is estimated from the one on older weights,
// with the square of the gradient in place of the second derivative.
// Source: Zheng, Meng, Wang, Chen, Yu, Ma and Liu, "Asynchronous Stochastic Gradient Descent with
// Delay Compensation", ICML 2017, equation (10) (DC-ASGD-c), and section 5 for the adaptive factor
// (DC-ASGD-a).
#include "policies/delay/delay_policy.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// g + lambda g^2 (w - pulled), elementwise; adaptive: with lambda / sqrt(running mean of g^2)
class DelayCompensated final : public DelayPolicy {
 public:
  explicit DelayCompensated(const plan::DelayCompensated& spec) : spec_(spec) {}
  std::string_view name() const override { return "delay_compensated"; }
  bool compares_weights() const override { return true; }
  int slots() const override { return spec_.adaptive ? 1 : 0; }  // the mean of g^2
  std::optional<kernels::DelayFormula> correction(const UpdateSize& size) const override {
    const auto lambda = static_cast<float>(spec_.lambda);
    if (!spec_.adaptive) return kernels::CompensationFormula{lambda};
    constexpr float kEpsilon = 1e-7f;  // the authors'
    const Decay mean(spec_.decay, size.weight);
    return kernels::AdaptiveCompensationFormula{.lambda = lambda,
                                                .keep = static_cast<float>(mean.keep),
                                                .gain = static_cast<float>(mean.gain),
                                                .epsilon = kEpsilon};
  }

 private:
  plan::DelayCompensated spec_;
};

}  // namespace leeway
