#pragma once
// FedBuff: the shard collects pushes in a buffer, and a number of them is one update. An older push
// counts less.
// Source: Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek and Huba, "Federated Learning with
// Buffered Asynchronous Aggregation", AISTATS 2022, algorithm 1 with the staleness function of
// section 3.1.
#include <cmath>

#include "policies/delay/delay_policy.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// b += w s (g + lambda p), with s = (1 + t)^-power, where t is the number of updates between the
/// pull and the push. The push that fills the buffer of K pushes also updates the weights:
///
///   m = beta^W m + c b / (K w),   p -= lr W m,   b = 0,   with c = (1 - beta^W) / (1 - beta)
///
/// W is the sum of the weights of K pushes; with whole_steps W = 1, as in the source. So K pushes
/// without a lag are one step of momentum (sgd: beta = 0) with weight W, by their mean gradient.
class FedBuff final : public DelayPolicy {
 public:
  /// `push_weight`: of one push. `momentum`: null for sgd.
  FedBuff(const plan::FedBuff& spec, double push_weight, bool whole_steps,
          const plan::Momentum* momentum)
      : interval_(spec.count * push_weight),
        step_(whole_steps ? 1 : interval_),
        power_(spec.power),
        factor_(momentum ? momentum->factor : 0),
        has_velocity_(momentum != nullptr) {}

  std::string_view name() const override { return "fed_buff"; }
  std::string_view refusal(const plan::Optimizer& optimizer) const override {
    if (std::holds_alternative<plan::Sgd>(optimizer.kind)) return "";
    const auto* momentum = std::get_if<plan::Momentum>(&optimizer.kind);
    if (!momentum) return "its buffer is a gradient of sgd or momentum; give one of these";
    return momentum->dampening == 0 ? "" : "it needs momentum without dampening; leave that out";
  }
  int slots() const override { return has_velocity_ ? 1 : 2; }  // m, b
  StateRange state_range(int /*slot*/) const override { return StateRange::any; }
  kernels::UpdateFormula formula(const Optimizer& optimizer,
                                 const UpdateSize& size) const override {
    const kernels::UpdateFormula plain = optimizer.formula(size);
    const auto updates_until = [this](double progress) {
      return intervals_until(progress, interval_);
    };
    const double before = size.progress - size.weight;
    const double age = updates_until(before) - updates_until(before - size.lag);
    const bool fills = updates_until(size.progress) > updates_until(before);
    return kernels::DelayedNesterovFormula{
        .decay = has_velocity_ ? std::get<kernels::MomentumFormula>(plain).decay
                               : std::get<kernels::SgdFormula>(plain).decay,
        .gain = static_cast<float>(size.weight * size.gain * std::pow(1 + age, -power_)),
        .direct = 0,
        .keep = static_cast<float>(fills ? std::pow(factor_, step_) : 1),
        .mean = static_cast<float>(fills ? velocity_gain(factor_, step_) / interval_ : 0),
        .rate = static_cast<float>(fills ? size.learning_rate * step_ : 0),
        .left = fills ? 0.0f : 1.0f,
    };
  }

 private:
  double interval_;  // progress of a whole buffer
  double step_;      // W
  double power_;
  double factor_;
  bool has_velocity_;
};

}  // namespace leeway
