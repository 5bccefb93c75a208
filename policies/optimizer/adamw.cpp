#include "policies/optimizer/adamw.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

void AdamW::update(const UpdateArgs& args) const {
  const Decay first(spec_.beta1, args.weight);
  const Decay second(spec_.beta2, args.weight);
  const double rate = args.learning_rate * args.weight / filled(spec_.beta1, args.progress);
  kernels::update(
      buffers_of(args, slots()),
      kernels::AdamFormula{
          .rate = static_cast<float>(rate),
          .decay = 0,
          .shrink = static_cast<float>(1 - args.learning_rate * args.weight * decay_),
          .keep1 = static_cast<float>(first.keep),
          .gain1 = static_cast<float>(first.gain),
          .keep2 = static_cast<float>(second.keep),
          .gain2 = static_cast<float>(second.gain),
          .scale = static_cast<float>(1 / std::sqrt(filled(spec_.beta2, args.progress))),
          .epsilon = static_cast<float>(spec_.epsilon),
      });
}

}  // namespace leeway
