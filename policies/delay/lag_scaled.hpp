#pragma once
// Staleness-aware SGD: a push's step is divided by a power of its lag.
// Source: Zhang, Gupta, Lian and Liu, "Staleness-Aware Async-SGD for Distributed Deep Learning",
// IJCAI 2016, section 3, with power 1. A power that falls from 1 to 0: Yang et al., "PipeMare:
// Asynchronous Pipeline Parallel DNN Training", MLSys 2021, section 3.1, technique 1.
#include <algorithm>
#include <cmath>

#include "policies/delay/delay_policy.hpp"

namespace leeway {

/// 1 / max(1, lag)^power of the learning rate; the power falls linearly to 0 within some rounds
class LagScaled final : public DelayPolicy {
 public:
  explicit LagScaled(const plan::LagScaled& spec) : spec_(spec) {}
  std::string_view name() const override { return "lag_scaled"; }
  double step_factor(const UpdateSize& size) const override {
    const double before = size.progress - size.weight;
    const double left = spec_.rounds > 0 ? std::max(0.0, 1 - before / spec_.rounds) : 1;
    return std::pow(std::max(1.0, size.lag), -spec_.power * left);
  }

 private:
  const plan::LagScaled spec_;
};

}  // namespace leeway
