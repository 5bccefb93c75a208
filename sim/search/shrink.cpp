#include "sim/search/shrink.hpp"

#include <algorithm>

#include "plan/fault_queries.hpp"
#include "plan/groups.hpp"

namespace leeway::sim {

namespace {

/// A change that makes a plan smaller; false if it does not apply.
using Change = std::function<bool(Plan&)>;

bool concerns(const plan::Fault& fault, Address actor) {
  if (fault.actor == actor) return true;
  if (const auto* breaks = std::get_if<plan::Breaks>(&fault.kind)) return breaks->peer == actor;
  if (const auto* delay = std::get_if<plan::Delay>(&fault.kind)) return delay->peer == actor;
  if (const auto* silence = std::get_if<plan::Silence>(&fault.kind)) return silence->peer == actor;
  if (const auto* partition = std::get_if<plan::Partition>(&fault.kind))
    return std::find(partition->with.begin(), partition->with.end(), actor) !=
           partition->with.end();
  return false;
}

/// Removes the last worker or shard with its faults and stragglers.
bool drop_last(Plan& plan, std::uint32_t& count, RoleKind kind, std::uint32_t least) {
  if (count <= least) return false;
  const Address last{kind, --count};
  std::erase_if(plan.faults, [&](const plan::Fault& fault) { return concerns(fault, last); });
  if (kind == RoleKind::worker)
    plan::remove_workers(plan.stragglers,
                         [&](std::uint32_t worker) { return worker == last.index; });
  return true;
}

/// Removes the last pipelines, host groups or single workers.
bool drop_members(Plan& plan, std::uint32_t count, std::uint32_t least) {
  bool any = false;
  const std::uint32_t workers = workers_per_member(plan);
  for (; count > 0 && plan.workers / workers > least; --count)
    for (std::uint32_t worker = 0; worker < workers; ++worker)
      any |= drop_last(plan, plan.workers, RoleKind::worker, 1);
  return any;
}

/// Removes the last stage of each pipeline, and renumbers the workers of the others.
bool drop_stage(Plan& plan) {
  const std::uint32_t stages = plan.pipeline.stages, last = stages - 1;
  if (stages == 1) return false;
  const auto of_last = [&](std::uint32_t worker) { return worker % stages == last; };
  for (std::uint32_t worker = last; worker < plan.workers; worker += stages)
    std::erase_if(plan.faults, [&](const plan::Fault& fault) {
      return concerns(fault, address_of(WorkerId(worker)));
    });
  plan::remove_workers(plan.stragglers, of_last);
  const auto renamed = [&](std::uint32_t worker) {
    return worker / stages * last + worker % stages;
  };
  const auto rename = [&](Address& actor) {
    if (actor.kind == RoleKind::worker) actor.index = renamed(actor.index);
  };
  for (plan::Straggler& straggler : plan.stragglers) {
    if (!straggler.all && straggler.together.empty()) straggler.worker = renamed(straggler.worker);
    for (std::uint32_t& worker : straggler.together) worker = renamed(worker);
  }
  for (plan::Fault& fault : plan.faults) {
    rename(fault.actor);
    if (auto* breaks = std::get_if<plan::Breaks>(&fault.kind)) rename(breaks->peer);
    if (auto* delay = std::get_if<plan::Delay>(&fault.kind)) rename(delay->peer);
    if (auto* silence = std::get_if<plan::Silence>(&fault.kind)) rename(silence->peer);
    if (auto* partition = std::get_if<plan::Partition>(&fault.kind))
      for (Address& actor : partition->with) rename(actor);
  }
  plan.workers = plan.workers / stages * last;
  plan.pipeline.stages = last;
  plan.pipeline.split.clear();
  std::erase(plan.pipeline.recompute, last);
  return true;
}

template <class T>
bool set(T& field, const T& value) {
  if (field == value) return false;
  field = value;
  return true;
}

/// All changes, in the order of the time that they save.
std::vector<Change> changes(const Plan& plan) {
  std::vector<Change> all;
  all.push_back([](Plan& p) {
    auto* made = std::get_if<plan::Synthetic>(&p.data);
    if (made && p.stop.epochs > 1) return set(p.stop.epochs, 1.0);
    return made && made->samples > 4 ? set(made->samples, made->samples / 2) : false;
  });
  all.push_back([](Plan& p) {
    return p.stop.iterations > 2 ? set(p.stop.iterations, p.stop.iterations / 2) : false;
  });
  for (std::size_t i = 0; i < plan.faults.size(); ++i)
    all.push_back([i](Plan& p) {
      if (i >= p.faults.size()) return false;
      p.faults.erase(p.faults.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    });
  for (std::size_t i = 0; i < plan.stragglers.size(); ++i)
    all.push_back([i](Plan& p) {
      if (i >= p.stragglers.size()) return false;
      p.stragglers.erase(p.stragglers.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    });
  all.push_back([](Plan& p) { return drop_members(p, 4, 2); });
  all.push_back([](Plan& p) { return drop_members(p, 1, 1); });
  all.push_back(drop_stage);
  all.push_back([](Plan& p) { return set(p.aggregate, plan::Aggregate(plan::NoGroups{})); });
  all.push_back([](Plan& p) {
    std::erase_if(p.faults,
                  [](const plan::Fault& fault) { return fault.actor.kind == RoleKind::standby; });
    return set(p.replicas, 1u);
  });
  all.push_back([](Plan& p) { return drop_last(p, p.shards, RoleKind::shard, 1); });
  all.push_back([](Plan& p) { return set(p.pipeline.split, std::string()); });
  all.push_back([](Plan& p) {
    if (p.pipeline.chunks > 1) p.pipeline.split.clear();
    const bool fewer = set(p.pipeline.chunks, 1u);
    p.pipeline.predict_weights = false;
    return set(p.pipeline.schedule, std::string("1f1b")) || fewer;
  });
  all.push_back([](Plan& p) { return set(p.pipeline.predict_weights, false); });
  all.push_back([](Plan& p) { return set(p.pipeline.recompute, {}); });
  all.push_back([](Plan& p) {
    return p.simulated && set(p.simulated->faults_from, plan::World::FaultsFrom::start);
  });
  all.push_back([](Plan& p) { return p.simulated && set(p.simulated->at_least, 0u); });
  all.push_back([](Plan& p) { return set(p.micro_batches, 1u); });
  all.push_back([](Plan& p) { return set(p.optimizer.clip_norm, 0.0); });
  all.push_back([](Plan& p) {
    p.loss_scale = Plan().loss_scale;
    return set(p.precision, std::string("fp32"));
  });
  all.push_back([](Plan& p) { return set(p.compress, plan::Compression{}); });
  all.push_back([](Plan& p) { return set(p.compress.push, plan::Codec(plan::NoCodec{})); });
  all.push_back([](Plan& p) { return set(p.compress.pull, plan::Codec(plan::NoCodec{})); });
  all.push_back([](Plan& p) { return set(p.optimizer.eight_bit_state, false); });
  all.push_back([](Plan& p) {
    p.optimizer.eight_bit_state = false;  // gradient descent has no state
    return set(p.optimizer.kind, plan::OptimizerKind(plan::Sgd{}));
  });
  all.push_back([](Plan& p) { return set(p.local_steps, plan::LocalSteps{}); });
  all.push_back([](Plan& p) { return set(p.delay_policy, plan::DelayPolicy{}); });
  all.push_back([](Plan& p) { return set(p.split_data, plan::SplitData{}); });
  all.push_back([](Plan& p) { return set(p.participation, 1.0); });
  all.push_back([](Plan& p) { return set(p.prefetch, false); });
  all.push_back([](Plan& p) { return set(p.evaluate_every, 0.0); });
  all.push_back([](Plan& p) { return set(p.balance, plan::Balance::equal); });
  all.push_back([](Plan& p) { return set(p.lease_size, 0u); });
  all.push_back([](Plan& p) { return set(p.batch, 1u); });
  all.push_back([](Plan& p) { return set(p.simulated->jitter, 0.0); });
  all.push_back([](Plan& p) { return set(p.simulated->noise, 0.0); });
  all.push_back([](Plan& p) { return set(p.simulated->link, 0.0); });
  return all;
}

}  // namespace

Plan shrink(Plan plan, const std::function<bool(const Plan&)>& fails, int most_trials) {
  for (bool smaller = true; smaller && most_trials > 0;) {
    smaller = false;
    for (const auto& change : changes(plan)) {
      if (most_trials-- <= 0) break;
      Plan candidate = plan;
      if (!change(candidate) || !validate(candidate) || !fails(candidate)) continue;
      plan = std::move(candidate);
      smaller = true;
    }
  }
  return plan;
}

}  // namespace leeway::sim
