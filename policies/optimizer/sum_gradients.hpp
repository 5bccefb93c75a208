#pragma once
// SumGradients, AssignGradients: updates of values that are not trained by gradient descent, such
// as counters or weights that the workers compute themselves.
#include "policies/optimizer/optimizer.hpp"

namespace leeway {

/// p += the sum of the gradients of a round, or of one push.
class SumGradients final : public Optimizer {
 public:
  explicit SumGradients(const plan::Sum&) {}
  std::string_view name() const override { return "sum"; }
  int slots() const override { return 0; }
  bool sums_rounds() const override { return true; }
  kernels::UpdateFormula formula(const UpdateSize&) const override { return kernels::SumFormula{}; }
};

/// p = the sum of the gradients of a round, or of one push.
class AssignGradients final : public Optimizer {
 public:
  explicit AssignGradients(const plan::Assign&) {}
  std::string_view name() const override { return "assign"; }
  int slots() const override { return 0; }
  bool sums_rounds() const override { return true; }
  kernels::UpdateFormula formula(const UpdateSize&) const override {
    return kernels::AssignFormula{};
  }
};

}  // namespace leeway
