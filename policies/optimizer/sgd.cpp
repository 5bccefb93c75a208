#include "policies/optimizer/sgd.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

kernels::UpdateFormula Sgd::formula(const UpdateSize& size) const {
  return kernels::SgdFormula{
      .rate = static_cast<float>(size.learning_rate * size.weight),
      .decay = static_cast<float>(decay_),
  };
}

}  // namespace leeway
