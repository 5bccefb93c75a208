#include "runtime/tools/remedies.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/text.hpp"
#include "dashboard/recorded.hpp"
#include "dashboard/sentences.hpp"
#include "policies/automatic_plan.hpp"
#include "policies/consistency/consistency.hpp"
#include "runtime/flags/values.hpp"

namespace leeway {
namespace {

std::optional<std::uint32_t> worst_straggler(const dashboard::RunHistory& history) {
  std::optional<std::uint32_t> worst;
  double longest = 0;
  for (const auto& [cause, seconds] : history.causes()) {
    if (cause.kind != blame::Cause::Kind::worker || seconds <= longest) continue;
    worst = static_cast<std::uint32_t>(cause.worker);
    longest = seconds;
  }
  if (worst || history.info().stages == 1) return worst;
  const std::vector<double> slowness = history.slowness();
  const auto slowest = std::ranges::max_element(slowness);
  if (*slowest > dashboard::kSlowStage)
    worst = static_cast<std::uint32_t>(slowest - slowness.begin());
  return worst;
}

struct Variant {
  std::string name;
  WhatIfOptions options;
};

std::vector<Variant> variants_of(const Plan& plan, const dashboard::RunHistory& history) {
  std::vector<Variant> variants;
  // `changed`: as the options change the plan.
  const auto add_valid = [&](const std::string& name, const WhatIfOptions& options,
                             const Plan& changed) {
    if (validate(changed)) variants.push_back({name, options});
  };
  const bool has_peers = plan.workers > plan.pipeline.stages;  // the same stage of other pipelines
  const auto straggler = worst_straggler(history);
  if (straggler && has_peers)
    variants.push_back({concat("worker ", *straggler, " as fast as the median"),
                        {.without_stragglers = {*straggler}}});
  Plan changed = plan;
  for (const plan::Consistency& policy :
       {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{1}),
        plan::Consistency(plan::Ssp{4}), plan::Consistency(plan::Asp{})}) {
    changed.consistency = policy;
    if (has_peers && policy != plan.consistency)
      add_valid(policy_name(policy), {.consistency = policy}, changed);
  }
  if (plan.pipeline.stages > 1) return variants;
  changed = plan;
  changed.balance = plan::Balance::by_speed;
  if (with_automatic_settings(plan).balance != plan::Balance::by_speed)
    add_valid("--balance speed", {.balance = plan::Balance::by_speed}, changed);
  changed = plan;
  changed.prefetch = true;
  if (!plan.prefetch) add_valid("--prefetch", {.prefetch = true}, changed);
  return variants;
}

}  // namespace

Expected<std::vector<Remedy>> simulate_remedies(const std::string& folder, const Plan& plan,
                                                const dashboard::RunHistory& history,
                                                bool gradients) {
  auto variants = variants_of(plan, history);
  std::vector<WhatIfOptions> options;
  for (Variant& variant : variants) {
    variant.options.folder = folder;
    variant.options.gradients = gradients;
    options.push_back(variant.options);
  }
  if (options.empty()) return std::vector<Remedy>();
  auto answers = what_if(options);
  if (!answers) return answers.error();
  std::vector<Remedy> remedies;
  for (std::size_t i = 0; i < variants.size(); ++i)
    remedies.push_back({std::move(variants[i].name), std::move((*answers)[i])});
  return remedies;
}

Expected<std::vector<Remedy>> simulate_remedies(const std::string& folder, bool gradients) {
  const auto plan = plan_from_file(folder + "/plan.json");
  if (!plan) return plan.error();
  const auto history = dashboard::load_history(folder, *plan, policy_name(plan->consistency));
  if (!history) return history.error();
  return simulate_remedies(folder, *plan, **history, gradients);
}

const Remedy& best_of(const std::vector<Remedy>& remedies) {
  return *std::ranges::max_element(remedies, {}, &Remedy::gain);
}

}  // namespace leeway
