#include "policies/optimizer/adagrad.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

kernels::UpdateFormula AdaGrad::formula(const UpdateSize& size) const {
  return kernels::AdaGradFormula{
      .rate = static_cast<float>(size.learning_rate * size.weight),
      .decay = static_cast<float>(decay_),
      .weight = static_cast<float>(size.weight),
      .epsilon = static_cast<float>(spec_.epsilon),
  };
}

}  // namespace leeway
