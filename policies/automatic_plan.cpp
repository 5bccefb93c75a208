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

Status check_implied(const GivenSettings& given, const plan::Consistency& consistency) {
  if (!std::holds_alternative<plan::Automatic>(consistency)) return {};
  if (given.balance && *given.balance != plan::Balance::by_speed)
    return Error{
        "--balance: --staleness auto gives batches by speed; leave out --balance equal, or give "
        "--staleness \"adaptive(0,16)\""};
  if (given.delay_policy && std::holds_alternative<plan::PlainPush>(*given.delay_policy))
    return Error{
        "--delay-policy: --staleness auto orders the pushes of momentum; leave out --delay-policy "
        "plain, or give --staleness \"adaptive(0,16)\""};
  return {};
}

}  // namespace leeway
