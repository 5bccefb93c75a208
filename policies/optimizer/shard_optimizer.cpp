#include "policies/optimizer/shard_optimizer.hpp"

#include <variant>

#include "core/text.hpp"
#include "plan/local_steps.hpp"
#include "policies/codec/momentum_correction.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/optimizer/optimizer.hpp"

namespace leeway {
namespace {

struct OuterKind {
  plan::OptimizerKind operator()(const plan::AverageChanges&) const { return plan::Sgd{}; }
  template <class Kind>
  plan::OptimizerKind operator()(const Kind& kind) const {
    return kind;
  }
};

plan::Optimizer outer_optimizer(const Plan& plan) {
  plan::Optimizer optimizer;
  optimizer.learning_rate = plan.local_steps.outer.learning_rate;
  optimizer.kind = std::visit(OuterKind{}, plan.local_steps.outer.kind);
  optimizer.whole_steps = plan.optimizer.whole_steps;
  return optimizer;
}

}  // namespace

plan::Optimizer shard_optimizer(const Plan& plan) {
  if (has_local_steps(plan)) return outer_optimizer(plan);
  plan::Optimizer optimizer = plan.optimizer;
  if (!MomentumCorrection::of(plan)) return optimizer;
  optimizer.weight_decay /= 1 - std::get<plan::Momentum>(optimizer.kind).factor;
  optimizer.kind = plan::Sgd{};
  return optimizer;
}

Status check_local_steps(const Plan& plan) {
  if (!has_local_steps(plan)) {
    if (plan.local_steps.merge != plan::Merge::mean)
      return Error{
          "local_steps.merge: without local steps there are no pseudo-gradients; give "
          "--local-steps "
          "1 or more, or --merge mean"};
    if (plan.local_steps.outer == plan::OuterOptimizer{}) return {};
    return Error{
        "local_steps.outer: without local steps there is no outer optimizer; give --local-steps 1 "
        "or more"};
  }
  const auto refused = [](const char* why) { return Error{concat("local_steps: ", why)}; };
  if (plan.pipeline.stages > 1)
    return refused(
        "no stage of a pipeline has the whole model to train on its own; give --stages 1, or "
        "--local-steps 0");
  if (make_optimizer(plan.optimizer)->sums_rounds())
    return refused(
        "sum, assign and updaters take no steps on a copy of the weights; give --local-steps 0, or "
        "another --optimizer");
  if (plan.optimizer.eight_bit_state)
    return refused(
        "workers keep the optimizer's state in 32 bits; leave out --eight-bit-state, or give "
        "--local-steps 0");
  if (plan.local_steps.merge != plan::Merge::mean &&
      !make_consistency(plan.consistency)->by_rounds())
    return Error{
        "local_steps.merge: without rounds each pseudo-gradient is applied on its own; give "
        "--staleness bsp, backup(N) or quorum(K), or --merge mean"};
  return {};
}

}  // namespace leeway
