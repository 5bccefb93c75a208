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

Status check_implied(const GivenSettings& given, const Plan& plan) {
  const Plan used = with_automatic_settings(plan);
  if (given.balance && *given.balance != used.balance)
    return Error{
        "--balance: --staleness auto gives batches by speed; leave out --balance equal, or give "
        "--staleness \"adaptive(0,16)\""};
  if (given.delay_policy && *given.delay_policy != used.delay_policy)
    return Error{
        "--delay-policy: --staleness auto orders the pushes of momentum; leave out --delay-policy "
        "plain, or give --staleness \"adaptive(0,16)\""};
  return {};
}

}  // namespace leeway
