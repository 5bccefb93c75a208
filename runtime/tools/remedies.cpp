#include "runtime/tools/remedies.hpp"

#include <utility>

#include "core/text.hpp"
#include "policies/automatic_plan.hpp"
#include "policies/consistency/consistency.hpp"
#include "runtime/flags/values.hpp"

namespace leeway {
namespace {

struct Variant {
  std::string name;
  WhatIfOptions options;
};

std::vector<Variant> variants_of(const Plan& plan, std::optional<std::uint32_t> culprit) {
  std::vector<Variant> variants;
  const bool is_piped = plan.pipeline.stages > 1;
  const bool has_peers = plan.workers > plan.pipeline.stages;  // the same stage of other pipelines
  if (culprit && has_peers)
    variants.push_back({concat("worker ", *culprit, " as fast as the median"),
                        {.without_stragglers = {*culprit}}});
  for (const plan::Consistency& policy :
       {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{1}),
        plan::Consistency(plan::Ssp{4}), plan::Consistency(plan::Asp{})})
    if (Plan changed = plan; policy != plan.consistency && has_peers &&
                             (changed.consistency = policy, validate(changed)))
      variants.push_back({policy_name(policy), {.consistency = policy}});
  if (is_piped) return variants;
  if (with_automatic_settings(plan).balance != plan::Balance::by_speed)
    variants.push_back({"--balance speed", {.balance = plan::Balance::by_speed}});
  if (Plan changed = plan; !plan.prefetch && (changed.prefetch = true, validate(changed)))
    variants.push_back({"--prefetch", {.prefetch = true}});
  return variants;
}

}  // namespace

Expected<std::vector<Remedy>> simulate_remedies(const std::string& folder,
                                                std::optional<std::uint32_t> culprit,
                                                bool gradients) {
  const auto plan = plan_from_file(folder + "/plan.json");
  if (!plan) return plan.error();
  auto variants = variants_of(*plan, culprit);
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

}  // namespace leeway
