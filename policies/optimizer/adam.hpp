#pragma once
// Adam: steps scaled by running moments of the gradient (Kingma, Ba, ICLR 2015, algorithm 1).
#include "policies/optimizer/optimizer.hpp"
#include "policies/optimizer/weighted.hpp"

namespace leeway {

/// m = b1^w m + (1 - b1^w) g', v = b2^w v + (1 - b2^w) g'^2, p -= lr w m^ / (sqrt(v^) + epsilon),
/// with g' = g + lambda p, m^ = m / (1 - b1^P), v^ = v / (1 - b2^P) and P the progress (sum of the
/// weights so far).
///
/// With amsgrad, v^ takes the largest v so far (Reddi, Kale, Kumar, ICLR 2018).
///
/// With w = 1, P counts steps and this is PyTorch's Adam. Under a constant gradient, m^ = g and
/// v^ = g^2 from the first push on, for any weights of the pushes.
class Adam final : public Optimizer {
 public:
  Adam(const plan::Adam& spec, double weight_decay) : spec_(spec), decay_(weight_decay) {}
  std::string_view name() const override { return "adam"; }
  int slots() const override { return spec_.amsgrad ? 3 : 2; }  // m, v, the largest v
  StateRange state_range(int slot) const override {
    return slot == 0 ? StateRange::any : StateRange::not_negative;
  }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    return adam_formula(spec_, size, decay_ * size.decay, 1);
  }
  std::optional<kernels::UpdateFormula> look_ahead(const UpdateSize& size,
                                                   double rounds) const override {
    return adam_look_ahead(spec_, size, rounds);
  }

 private:
  plan::Adam spec_;
  double decay_;
};

}  // namespace leeway
