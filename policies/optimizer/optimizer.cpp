#include "policies/optimizer/optimizer.hpp"

#include <cmath>

#include "core/check.hpp"
#include "policies/optimizer/adagrad.hpp"
#include "policies/optimizer/adam.hpp"
#include "policies/optimizer/adamw.hpp"
#include "policies/optimizer/delayed_nesterov.hpp"
#include "policies/optimizer/lion.hpp"
#include "policies/optimizer/momentum.hpp"
#include "policies/optimizer/muon.hpp"
#include "policies/optimizer/nadam.hpp"
#include "policies/optimizer/nesterov.hpp"
#include "policies/optimizer/sgd.hpp"
#include "policies/optimizer/sum_gradients.hpp"
#include "policies/optimizer/updater_optimizer.hpp"

namespace leeway {

namespace {

struct OptimizerMaker {
  double weight_decay;
  std::unique_ptr<Optimizer> operator()(const plan::Sgd& spec) const {
    return std::make_unique<Sgd>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Momentum& spec) const {
    return std::make_unique<Momentum>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Nesterov& spec) const {
    return std::make_unique<Nesterov>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::DelayedNesterov& spec) const {
    return std::make_unique<DelayedNesterov>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Adam& spec) const {
    return std::make_unique<Adam>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::AdamW& spec) const {
    return std::make_unique<AdamW>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::AdaGrad& spec) const {
    return std::make_unique<AdaGrad>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::NAdam& spec) const {
    return std::make_unique<NAdam>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Lion& spec) const {
    return std::make_unique<Lion>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Muon& spec) const {
    return std::make_unique<Muon>(spec, weight_decay);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Sum& spec) const {
    return std::make_unique<SumGradients>(spec);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Assign& spec) const {
    return std::make_unique<AssignGradients>(spec);
  }
  std::unique_ptr<Optimizer> operator()(const plan::Updater& spec) const {
    return std::make_unique<UpdaterOptimizer>(spec);
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const plan::Optimizer& spec) {
  return std::visit(OptimizerMaker{spec.weight_decay}, spec.kind);
}

void Optimizer::update(Executor& on, const kernels::UpdateBuffers& buffers,
                       const UpdateSize& size) const {
  check(buffers, size);
  on.update(buffers, formula(size));
}

void Optimizer::check(const kernels::UpdateBuffers& buffers, const UpdateSize& size) const {
  LW_CHECK(buffers.count == 0 || (buffers.w && buffers.w_out && buffers.g), buffers.count);
  for (int slot = 0; slot < slots() && buffers.count > 0; ++slot)
    LW_CHECK(buffers.state[slot] && buffers.state_out[slot], slot, name());
  LW_CHECK(size.weight >= 0 && std::isfinite(size.learning_rate), size.weight, size.learning_rate);
}

}  // namespace leeway
