#include "policies/delay/delay_policy.hpp"

#include <variant>

#include "core/text.hpp"
#include "plan/groups.hpp"
#include "plan/local_steps.hpp"
#include "policies/codec/momentum_correction.hpp"
#include "policies/consistency/consistency.hpp"
#include "policies/delay/delay_adaptive.hpp"
#include "policies/delay/delay_compensated.hpp"
#include "policies/delay/delay_threshold.hpp"
#include "policies/delay/fed_async.hpp"
#include "policies/delay/fed_buff.hpp"
#include "policies/delay/gap_aware.hpp"
#include "policies/delay/lag_scaled.hpp"
#include "policies/delay/ordered_momentum.hpp"
#include "policies/optimizer/shard_optimizer.hpp"

namespace leeway {
namespace {

/// Of one push of a member.
double push_weight(const Plan& plan) {
  return plan.optimizer.whole_steps ? 1
                                    : static_cast<double>(workers_per_member(plan)) / plan.workers;
}

struct DelayPolicyMaker {
  const Plan& plan;
  const plan::Optimizer& optimizer;
  const plan::Momentum* momentum = std::get_if<plan::Momentum>(&optimizer.kind);
  std::unique_ptr<DelayPolicy> operator()(const plan::PlainPush&) const { return nullptr; }
  std::unique_ptr<DelayPolicy> operator()(const plan::LagScaled& spec) const {
    return std::make_unique<LagScaled>(spec);
  }
  std::unique_ptr<DelayPolicy> operator()(const plan::DelayAdaptive& spec) const {
    return std::make_unique<DelayAdaptive>(spec);
  }
  std::unique_ptr<DelayPolicy> operator()(const plan::GapAware& spec) const {
    return std::make_unique<GapAware>(spec);
  }
  std::unique_ptr<DelayPolicy> operator()(const plan::DelayCompensated& spec) const {
    return std::make_unique<DelayCompensated>(spec);
  }
  std::unique_ptr<DelayPolicy> operator()(const plan::FedAsync& spec) const {
    return std::make_unique<FedAsync>(spec);
  }
  std::unique_ptr<DelayPolicy> operator()(const plan::OrderedMomentum&) const {
    return std::make_unique<OrderedMomentum>(momentum ? momentum->factor : 0);
  }
  std::unique_ptr<DelayPolicy> operator()(const plan::FedBuff& spec) const {
    return std::make_unique<FedBuff>(spec, push_weight(plan), plan.optimizer.whole_steps, momentum);
  }
  std::unique_ptr<DelayPolicy> operator()(const plan::DelayThreshold& spec) const {
    return std::make_unique<DelayThreshold>(spec);
  }
};

/// The reason why a plan cannot have this limit of lags, and the remedy; empty: it can.
std::string refusal_of_limit(const Plan& plan, double limit) {
  if (plan.pipeline.stages > 1)
    return "a stage cannot compute an iteration again that other stages have seen; give --stages 1";
  if (!plan.prefetch) return "";
  // The worker's own push comes between a prefetch and its push.
  const double own = push_weight(plan);
  if (limit > own) return "";
  return concat("a worker's own push makes its prefetched weights as old as ", limit,
                "; give more than ", own, ", or --no-prefetch");
}

}  // namespace

std::unique_ptr<DelayPolicy> make_delay_policy(const Plan& plan) {
  return std::visit(DelayPolicyMaker{plan, shard_optimizer(plan)}, plan.delay_policy);
}

Status check_delay_policy(const Plan& plan) {
  const bool has_rounds = make_consistency(plan.consistency)->by_rounds();
  const bool takes_steps = !make_optimizer(plan.optimizer)->sums_rounds();
  if (plan.optimizer.whole_steps && has_rounds)
    return Error{
        "optimizer.whole_steps: a round of bsp, backup or quorum is a whole step already; leave "
        "out --whole-steps, or give --staleness asp or a bound"};
  if (plan.optimizer.whole_steps && !takes_steps)
    return Error{
        "optimizer.whole_steps: sum, assign and updaters take no steps; leave out --whole-steps"};
  const auto policy = make_delay_policy(plan);
  if (!policy) return {};
  if (plan.pipeline.predict_weights)
    return Error{
        "pipeline.predict_weights: a delay policy takes gradients of weights that a shard had, not "
        "of predicted ones; leave out --predict-weights or --delay-policy"};
  const plan::Optimizer optimizer = shard_optimizer(plan);
  const auto refused = [&](const auto&... why) {
    return Error{concat("delay_policy.", policy->name(), ": ", why...)};
  };
  if (has_rounds)
    return refused(
        "under bsp, backup and quorum no push is computed on older weights than its round; give "
        "--staleness asp or a bound, or --delay-policy plain");
  if (!takes_steps)
    return refused(
        "sum, assign and updaters take no steps that it could change; give --delay-policy plain");
  if (std::holds_alternative<plan::DelayCompensated>(plan.delay_policy) && has_local_steps(plan))
    return refused(
        "it predicts gradients, and workers push the difference of weights; give --local-steps 0, "
        "or another --delay-policy");
  if (const auto limit = policy->lag_limit()) {
    const std::string why = refusal_of_limit(plan, *limit);
    return why.empty() ? Status() : refused(why);
  }
  if (std::holds_alternative<plan::Muon>(optimizer.kind))
    return refused(
        "muon takes steps of whole matrices, which it cannot change; give another --optimizer, or "
        "--delay-policy plain");
  if (std::holds_alternative<plan::FedAsync>(plan.delay_policy) && !has_local_steps(plan))
    return refused("it mixes models, which local steps make; give --local-steps");
  const bool has_velocity = std::holds_alternative<plan::OrderedMomentum>(plan.delay_policy) ||
                            std::holds_alternative<plan::FedBuff>(plan.delay_policy);
  if (has_velocity && MomentumCorrection::of(plan))
    return refused(
        "with top_k and random_k the workers keep the velocity; give --compress push=none, or "
        "another --delay-policy");
  const char* const outer =
      has_local_steps(plan) ? " (with local steps, as --outer-optimizer)" : "";
  if (const auto why = policy->refusal(optimizer); !why.empty()) return refused(why, outer);
  if (plan.optimizer.eight_bit_state && policy->slots() > 0)
    return refused(
        "its own state needs 32 bits, in which small changes add up; leave out --eight-bit-state, "
        "or give another --delay-policy");
  return {};
}

}  // namespace leeway
