#include "policies/optimizer/adamw.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

kernels::UpdateFormula AdamW::formula(const UpdateSize& size) const {
  const Decay first(spec_.beta1, size.weight);
  const Decay second(spec_.beta2, size.weight);
  const double rate = size.learning_rate * size.weight / filled(spec_.beta1, size.progress);
  return kernels::AdamFormula{
      .rate = static_cast<float>(rate),
      .decay = 0,
      .shrink = static_cast<float>(1 - size.learning_rate * size.weight * decay_),
      .keep1 = static_cast<float>(first.keep),
      .gain1 = static_cast<float>(first.gain),
      .keep2 = static_cast<float>(second.keep),
      .gain2 = static_cast<float>(second.gain),
      .scale = static_cast<float>(1 / std::sqrt(filled(spec_.beta2, size.progress))),
      .epsilon = static_cast<float>(spec_.epsilon),
  };
}

}  // namespace leeway
