#pragma once
// Staleness-aware SGD: a push's step is divided by a power of its lag.
// Source: Zhang, Gupta, Lian and Liu, "Staleness-Aware Async-SGD for Distributed Deep Learning",
// IJCAI 2016, section 3, with power 1.
#include <algorithm>
#include <cmath>

#include "policies/delay/delay_policy.hpp"

namespace leeway {

/// 1 / max(1, lag)^power of the learning rate
class LagScaled final : public DelayPolicy {
 public:
  explicit LagScaled(const plan::LagScaled& spec) : power_(spec.power) {}
  std::string_view name() const override { return "lag_scaled"; }
  double step_factor(const UpdateSize& size) const override {
    return std::pow(std::max(1.0, size.lag), -power_);
  }

 private:
  double power_;
};

}  // namespace leeway
