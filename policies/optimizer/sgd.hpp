#pragma once
// Sgd: stochastic gradient descent without state.
#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// p -= lr w (g + lambda p). With w = 1 this is PyTorch's SGD. lambda: weight decay.
class Sgd final : public Optimizer {
 public:
  Sgd(const plan::Sgd&, double weight_decay) : decay_(weight_decay) {}
  std::string_view name() const override { return "sgd"; }
  int slots() const override { return 0; }
  kernels::UpdateFormula formula(const UpdateSize& size) const override {
    return kernels::SgdFormula{
        .rate = static_cast<float>(size.learning_rate * size.weight),
        .decay = static_cast<float>(decay_ * size.decay),
    };
  }

 private:
  double decay_;
};

}  // namespace leeway
