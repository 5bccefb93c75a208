#pragma once
// FedAsync: the shard mixes the model of a worker into its own. An older model gets a smaller
// share. Source: Xie, Koyejo and Gupta, "Asynchronous Federated Optimization", 2019, algorithm 1
// with the polynomial or the hinge staleness function of section 5.2.
#include <algorithm>
#include <cmath>

#include "policies/delay/delay_policy.hpp"

namespace leeway {

/// p = (1 - s) p + s p', with s = a (1 + lag)^-power times the weight of the push, or with a hinge
/// h > 0 and lags of up to b without an effect: s = a / (1 + h max(0, lag - b)). p' are the
/// weights of the worker after its local steps, which is its pull minus the pushed pseudo-gradient.
/// So the pseudo-gradient gets the distance from the pull added, and is scaled by s.
class FedAsync final : public DelayPolicy {
 public:
  explicit FedAsync(const plan::FedAsync& spec) : spec_(spec) {}
  std::string_view name() const override { return "fed_async"; }
  std::string_view refusal(const plan::Optimizer& optimizer) const override {
    return std::holds_alternative<plan::Sgd>(optimizer.kind) ? ""
                                                             : "it averages models; give average";
  }
  bool compares_weights() const override { return true; }
  double step_factor(const UpdateSize& size) const override {
    return spec_.hinge > 0
               ? spec_.mixing / (1 + spec_.hinge * std::max(0.0, size.lag - spec_.within))
               : spec_.mixing * std::pow(1 + size.lag, -spec_.power);
  }
  std::optional<kernels::DelayFormula> correction(const UpdateSize&) const override {
    return kernels::DistanceFormula{};
  }

 private:
  plan::FedAsync spec_;
};

}  // namespace leeway
