#include "policies/optimizer/sgd.hpp"

#include "policies/optimizer/weighted.hpp"

namespace leeway {

void Sgd::update(const UpdateArgs& args) const {
  kernels::update(buffers_of(args, slots()),
                  kernels::SgdFormula{
                      .rate = static_cast<float>(args.learning_rate * args.weight),
                      .decay = static_cast<float>(decay_),
                  });
}

}  // namespace leeway
