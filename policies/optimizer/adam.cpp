#include "policies/optimizer/adam.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

kernels::UpdateFormula Adam::formula(const UpdateSize& size) const {
  return adam_formula(spec_, size, decay_, 1);
}

}  // namespace leeway
