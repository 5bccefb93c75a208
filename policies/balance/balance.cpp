#include "policies/balance/balance.hpp"

#include "policies/balance/by_speed.hpp"
#include "policies/balance/equal.hpp"

namespace leeway {

std::unique_ptr<Balance> make_balance(const Plan& plan) {
  if (plan.balance == plan::Balance::by_speed) return std::make_unique<BySpeed>(plan.batch);
  return std::make_unique<Equal>(plan.batch);
}

std::uint32_t largest_batch(const Plan& plan) {
  return plan.balance == plan::Balance::by_speed ? plan.batch * BySpeed::kMostBatches : plan.batch;
}

}  // namespace leeway
