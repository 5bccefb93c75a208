#include "policies/automatic_plan.hpp"

#include <variant>

#include "plan/precision.hpp"
#include "policies/delay/delay_policy.hpp"

namespace leeway {
namespace {

void send_in_bf16(plan::Codec& codec) {
  if (std::holds_alternative<plan::NoCodec>(codec)) codec = plan::Bf16{};
}

void set_encodings(Plan& plan) {
  send_in_bf16(plan.compress.pull);
  if (plan.pipeline.stages == 1) return;
  send_in_bf16(plan.compress.activations);
  send_in_bf16(plan.compress.activation_gradients);
}

}  // namespace

Plan with_automatic_settings(Plan plan) {
  if (is_mixed_precision(plan.precision)) set_encodings(plan);
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
