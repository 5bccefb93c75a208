#pragma once
// Ringmaster: no push is older than a limit. A worker whose weights become too old computes its
// iteration again with newer weights, instead of a push that does damage. The rule has the optimal
// time complexity for workers whose speeds are unknown and change.
// Source: Maranjyan, Tyurin and Richtarik, "Ringmaster ASGD: The First Asynchronous SGD with
// Optimal Time Complexity", ICML 2025, algorithms 4 and 5. There the limit counts updates, as with
// whole_steps.
#include "policies/delay/delay_policy.hpp"

namespace leeway {

/// A push below the limit is applied like any other.
class DelayThreshold final : public DelayPolicy {
 public:
  explicit DelayThreshold(const plan::DelayThreshold& spec) : limit_(spec.limit) {}
  std::string_view name() const override { return "delay_threshold"; }
  std::optional<double> lag_limit() const override { return limit_; }

 private:
  double limit_;
};

}  // namespace leeway
