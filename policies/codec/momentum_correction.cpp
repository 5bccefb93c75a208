#include "policies/codec/momentum_correction.hpp"

#include <variant>

#include "plan/local_steps.hpp"
#include "policies/codec/codec.hpp"

namespace leeway {

std::optional<MomentumCorrection> MomentumCorrection::of(const Plan& plan) {
  const auto* momentum = std::get_if<plan::Momentum>(&plan.optimizer.kind);
  if (!is_sparse(plan.compress.push) || has_local_steps(plan)) return std::nullopt;
  if (!momentum || momentum->dampening > 0) return std::nullopt;
  return MomentumCorrection{static_cast<float>(momentum->factor)};
}

}  // namespace leeway
