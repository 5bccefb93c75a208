#pragma once
// AdamW: Adam with decoupled weight decay (Loshchilov, Hutter, ICLR 2019, algorithm 2).
#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// p -= lr w lambda p, then Adam's step with g' = g. With w = 1 this is PyTorch's AdamW.
class AdamW final : public Optimizer {
 public:
  AdamW(const plan::AdamW& spec, double weight_decay) : spec_(spec), decay_(weight_decay) {}
  std::string_view name() const override { return "adamw"; }
  int slots() const override { return spec_.amsgrad ? 3 : 2; }  // m, v, the largest v
  StateRange state_range(int slot) const override {
    return slot == 0 ? StateRange::any : StateRange::not_negative;
  }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    const double shrink = size.learning_rate * size.weight * decay_ * size.decay;
    return adam_formula(spec_, size, 0, 1 - shrink);
  }
  std::optional<kernels::UpdateFormula> look_ahead(const UpdateSize& size,
                                                   double rounds) const override {
    return adam_look_ahead(spec_, size, rounds);
  }

 private:
  plan::AdamW spec_;
  double decay_;
};

}  // namespace leeway
