#include "cluster/check_request.hpp"

#include <algorithm>

#include "actors/cluster/agent.hpp"
#include "actors/job.hpp"
#include "cluster/machine.hpp"
#include "cluster/node_checkpoints.hpp"
#include "cluster/node_name.hpp"
#include "cluster/shipped.hpp"
#include "core/text.hpp"
#include "policies/straggler/straggler.hpp"

namespace leeway {

std::optional<Plan> check_request(const node::Ask& ask, Files& disk, bool has_loops,
                                  node::Answer& answer) {
  std::vector<std::string>& problems = answer.problems;
  if (ask.version != leeway_version()) {
    problems.push_back(concat("it has Leeway ", leeway_version(), ", the program has ", ask.version,
                              "; use the same version everywhere"));
    return std::nullopt;  // the plan may mean something else here
  }
  auto plan = decode_plan(ask.plan.header());
  if (!plan) {
    problems.push_back(plan.error().text);
    return std::nullopt;
  }
  const Placement placement = placement_of(ask);
  if (placement.shards.size() != plan->shards || placement.workers.size() != plan->workers)
    problems.push_back(concat("the placement has ", placement.shards.size(), " shards and ",
                              placement.workers.size(), " workers, the plan ", plan->shards,
                              " and ", plan->workers, "; use the same version everywhere"));
  if (const auto there = check_sources(plan->stragglers); !there)
    problems.push_back(there.error().text);
  if (const auto ready = check_checkpoints(ask, disk, answer); !ready)
    problems.push_back(ready.error().text);
  if (placement.standbys.size() != (plan->replicas > 1 ? plan->shards : 0))
    problems.push_back(concat("the placement has ", placement.standbys.size(),
                              " standbys, the plan ", plan->shards, " shards and ", plan->replicas,
                              " replicas; use the same version everywhere"));
  if (ask.user_loops && !has_loops && std::ranges::count(placement.workers, NodeIndex(ask.self)))
    problems.push_back(
        "the job's workers compute in their own processes; place only shards on this node");
  answer.arithmetic = arithmetic_of(*plan);
  // The request contains the initial weights.
  plan->init_from.clear();
  plan->fine_tuning.init_map.clear();
  plan->fine_tuning.partial = false;
  if (problems.empty()) {
    const auto job = make_job(
        *plan, described(ask.data),
        {.here = [&](Address actor) { return placement.node_of(actor) == NodeIndex(ask.self); },
         .initial_weights = ask.initial_weights});
    if (!job) problems.push_back(job.error().text);
  }
  if (!problems.empty()) return std::nullopt;
  return std::move(*plan);
}

}  // namespace leeway
