// The shard's side of blocks that several stages of a pipeline own: a table that the last stage
// borrows from the first.
//
// Each of them computes a part of the gradient, a half. Where the pipeline is emptied for each
// update the halves of an iteration are summed and applied as one, and who pulls waits for its own
// pushes and for those of the other owners: so both compute an iteration on the same table. Where
// it is not, each half is an update of its own; under bsp a round sums them (ParameterBucket).
#include <algorithm>

#include "actors/shard/shard.hpp"
#include "core/mutant.hpp"

namespace leeway {

bool Shard::is_shared(std::uint32_t group) const {
  return job_->stages->owners(id_, group).size() > 1 && !job_->stages->asynchronous();
}

std::vector<std::vector<std::uint32_t>> Shard::find_siblings() const {
  std::vector<std::vector<std::uint32_t>> siblings(job_->stages->count());
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (!is_shared(group)) continue;
    for (const std::uint32_t one : job_->stages->owners(id_, group))
      for (const std::uint32_t other : job_->stages->owners(id_, group))
        if (one != other &&
            std::find(siblings[one].begin(), siblings[one].end(), other) == siblings[one].end())
          siblings[one].push_back(other);
  }
  return siblings;
}

Clock Shard::common_clock(WorkerId worker) const {
  Clock least = clocks_.find(worker)->clock;
  if (planted(Mutant::sibling_not_awaited)) return least;
  const Stages& stages = *job_->stages;
  for (const std::uint32_t stage : siblings_[stages.stage_of(worker)]) {
    const auto* sibling = clocks_.find(stages.worker(stages.lead_of(worker), stage));
    least = std::min(least, sibling ? sibling->clock : Clock());
  }
  return least;
}

std::uint32_t Shard::parked_with(WorkerId worker) const {
  const Stages& stages = *job_->stages;
  std::uint32_t parked = parked_of(worker);
  for (const std::uint32_t stage : siblings_[stages.stage_of(worker)])
    parked += parked_of(stages.worker(stages.lead_of(worker), stage));
  return parked;
}

void Shard::take_tied(Contribution contribution, Outbox& out) {
  const std::uint32_t group = contribution.group;
  const WorkerId lead = job_->stages->lead_of(contribution.worker);
  const auto entry = halves_.try_emplace({lead, contribution.iteration, group}).first;
  auto& halves = entry->second;
  halves.push_back(std::move(contribution));
  std::sort(halves.begin(), halves.end(),
            [](const Contribution& a, const Contribution& b) { return a.worker < b.worker; });
  if (waits(group, halves)) return;
  auto taken = std::move(halves);
  halves_.erase(entry);
  enqueue_update(group, std::move(taken), out);
}

/// Whether all owners take part, and one of them may still push its half. Who is out pushes no
/// more, and what comes of it in a later life is of later leases.
bool Shard::waits(std::uint32_t group, const std::vector<Contribution>& halves) const {
  if (planted(Mutant::tied_gradient_applied_alone)) return false;
  const Stages& stages = *job_->stages;
  const WorkerId lead = stages.lead_of(halves.front().worker);
  bool missing = false;
  for (const std::uint32_t stage : stages.owners(id_, group)) {
    const WorkerId owner = stages.worker(lead, stage);
    const auto* participant = clocks_.find(owner);
    if (!participant || !participant->live || participant->fenced) return false;
    const bool here = std::any_of(halves.begin(), halves.end(),
                                  [&](const Contribution& half) { return half.worker == owner; });
    missing |= !here && participant->clock.value() <= halves.front().iteration.value();
  }
  return missing;
}

void Shard::release_tied(WorkerId lead, Outbox& out) {
  std::vector<std::pair<std::uint32_t, std::vector<Contribution>>> released;
  for (auto entry = halves_.lower_bound({lead, Iteration(), 0});
       entry != halves_.end() && std::get<WorkerId>(entry->first) == lead;) {
    const auto group = std::get<std::uint32_t>(entry->first);
    if (waits(group, entry->second)) {
      ++entry;
    } else {
      released.emplace_back(group, std::move(entry->second));
      entry = halves_.erase(entry);
    }
  }
  for (auto& [group, halves] : released) {
    if (planted(Mutant::tied_gradient_lost)) {
      for (const Contribution& half : halves) forget_unapplied(half);
    } else {
      enqueue_update(group, std::move(halves), out);
    }
  }
}

}  // namespace leeway
