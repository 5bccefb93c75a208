#include "policies/automatic_plan.hpp"

#include <variant>

#include "policies/delay/delay_policy.hpp"

namespace leeway {

Plan with_automatic_settings(Plan plan) {
  if (!std::holds_alternative<plan::Automatic>(plan.consistency)) return plan;
  plan.balance = plan::Balance::by_speed;
  if (!std::holds_alternative<plan::PlainPush>(plan.delay_policy)) return plan;
  plan.delay_policy = plan::OrderedMomentum{};
  if (!check_delay_policy(plan)) plan.delay_policy = plan::PlainPush{};
  return plan;
}

}  // namespace leeway
