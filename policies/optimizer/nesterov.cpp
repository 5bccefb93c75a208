#include "policies/optimizer/nesterov.hpp"

#include <cmath>

#include "policies/optimizer/weighted.hpp"

namespace leeway {

kernels::UpdateFormula Nesterov::formula(const UpdateSize& size) const {
  return kernels::NesterovFormula{
      .rate = static_cast<float>(size.learning_rate * size.weight),
      .decay = static_cast<float>(decay_),
      .keep = static_cast<float>(std::pow(factor_, size.weight)),
      .gain = static_cast<float>(velocity_gain(factor_, size.weight)),
  };
}

}  // namespace leeway
