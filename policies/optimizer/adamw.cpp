#include "policies/optimizer/adamw.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

kernels::UpdateFormula AdamW::formula(const UpdateSize& size) const {
  return adam_formula(spec_, size, 0, 1 - size.learning_rate * size.weight * decay_);
}

}  // namespace leeway
