#include "policies/optimizer/momentum.hpp"

#include <cmath>

#include "policies/optimizer/weighted.hpp"

namespace leeway {

void Momentum::update(const UpdateArgs& args) const {
  kernels::update(buffers_of(args, slots()),
                  kernels::MomentumFormula{
                      .rate = static_cast<float>(args.learning_rate * args.weight),
                      .decay = static_cast<float>(decay_),
                      .keep = static_cast<float>(std::pow(factor_, args.weight)),
                      .gain = static_cast<float>(velocity_gain(factor_, args.weight)),
                  });
}

}  // namespace leeway
