#include "policies/codec/momentum_correction.hpp"

#include <variant>

#include "policies/codec/codec.hpp"

namespace leeway {

std::optional<MomentumCorrection> MomentumCorrection::of(const Plan& plan) {
  const auto* momentum = std::get_if<plan::Momentum>(&plan.optimizer.kind);
  if (!is_sparse(plan.compress.push) || !momentum || momentum->dampening > 0) return std::nullopt;
  return MomentumCorrection{static_cast<float>(momentum->factor)};
}

plan::Optimizer shard_optimizer(const Plan& plan) {
  plan::Optimizer optimizer = plan.optimizer;
  if (!MomentumCorrection::of(plan)) return optimizer;
  optimizer.weight_decay /= 1 - std::get<plan::Momentum>(optimizer.kind).factor;
  optimizer.kind = plan::Sgd{};
  return optimizer;
}

}  // namespace leeway
