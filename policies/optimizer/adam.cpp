#include "policies/optimizer/adam.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

void Adam::update(const UpdateArgs& args) const {
  const Decay first(spec_.beta1, args.weight);
  const Decay second(spec_.beta2, args.weight);
  const double rate = args.learning_rate * args.weight / filled(spec_.beta1, args.progress);
  kernels::update(
      buffers_of(args, slots()),
      kernels::AdamFormula{
          .rate = static_cast<float>(rate),
          .decay = static_cast<float>(decay_),
          .shrink = 1,
          .keep1 = static_cast<float>(first.keep),
          .gain1 = static_cast<float>(first.gain),
          .keep2 = static_cast<float>(second.keep),
          .gain2 = static_cast<float>(second.gain),
          .scale = static_cast<float>(1 / std::sqrt(filled(spec_.beta2, args.progress))),
          .epsilon = static_cast<float>(spec_.epsilon),
      });
}

}  // namespace leeway
