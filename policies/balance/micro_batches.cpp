#include "policies/balance/micro_batches.hpp"

#include <algorithm>

#include "policies/balance/balance.hpp"

namespace leeway {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::int64_t micro_batch_size(const Plan& plan) {
  return ceil_div(plan.batch, plan.micro_batches);
}

std::int64_t largest_micro_batch(const Plan& plan) {
  return ceil_div(largest_batch(plan), plan.micro_batches);
}

std::int64_t micro_batches_of(const Plan& plan, std::int64_t samples) {
  if (samples == plan.batch) return plan.micro_batches;
  const std::int64_t usual = ceil_div(samples, micro_batch_size(plan));
  return plan.pipeline.stages > 1 ? std::min<std::int64_t>(plan.micro_batches, usual) : usual;
}

}  // namespace leeway
