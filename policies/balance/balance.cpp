#include "policies/balance/balance.hpp"

#include <algorithm>
#include <limits>

#include "plan/local_steps.hpp"
#include "policies/balance/by_speed.hpp"
#include "policies/balance/equal.hpp"

namespace leeway {

std::unique_ptr<Balance> make_balance(const Plan& plan) {
  const auto samples = static_cast<std::uint32_t>(iteration_samples(plan));
  if (plan.balance == plan::Balance::by_speed) return std::make_unique<BySpeed>(samples);
  return std::make_unique<Equal>(samples);
}

std::uint32_t largest_batch(const Plan& plan) {
  const std::uint64_t samples =
      iteration_samples(plan) *
      (plan.balance == plan::Balance::by_speed ? BySpeed::kMostBatches : 1);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(samples, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace leeway
