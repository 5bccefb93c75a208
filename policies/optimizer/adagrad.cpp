#include "policies/optimizer/adagrad.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

void AdaGrad::update(const UpdateArgs& args) const {
  kernels::update(buffers_of(args, slots()),
                  kernels::AdaGradFormula{
                      .rate = static_cast<float>(args.learning_rate * args.weight),
                      .decay = static_cast<float>(decay_),
                      .weight = static_cast<float>(args.weight),
                      .epsilon = static_cast<float>(spec_.epsilon),
                  });
}

}  // namespace leeway
