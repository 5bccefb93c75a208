#include "policies/codec/momentum_correction.hpp"

#include <variant>

namespace leeway {

std::optional<MomentumCorrection> MomentumCorrection::of(const Plan& plan) {
  const plan::Codec& push = plan.compress.push;
  const auto* momentum = std::get_if<plan::Momentum>(&plan.optimizer.kind);
  const bool is_sparse =
      std::holds_alternative<plan::TopK>(push) || std::holds_alternative<plan::RandomK>(push);
  if (!is_sparse || !momentum || momentum->dampening > 0) return std::nullopt;
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
