#include "actors/shard/tied_blocks.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"

namespace leeway {

TiedBlocks::TiedBlocks(const Stages& stages, ShardId shard, std::uint32_t buckets,
                       const ClockTable& clocks)
    : stages_(stages), shard_(shard), clocks_(clocks), siblings_(stages.count()) {
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
    if (!is_tied(bucket)) continue;
    const auto& owners = stages_.owners(shard_, bucket);
    for (const std::uint32_t one : owners)
      for (const std::uint32_t other : owners) {
        auto& siblings = siblings_[one];
        if (one != other && std::find(siblings.begin(), siblings.end(), other) == siblings.end())
          siblings.push_back(other);
      }
  }
}

bool TiedBlocks::is_tied(std::uint32_t shard_bucket) const {
  return stages_.owners(shard_, shard_bucket).size() > 1 && !stages_.asynchronous();
}

std::vector<WorkerId> TiedBlocks::siblings(WorkerId worker) const {
  std::vector<WorkerId> workers;
  for (const std::uint32_t stage : siblings_[stages_.stage_of(worker)])
    workers.push_back(stages_.worker(stages_.lead_of(worker), stage));
  return workers;
}

Clock TiedBlocks::common_clock(WorkerId worker) const {
  Clock least = clocks_.find(worker)->clock;
  if (planted(Mutant::sibling_not_awaited)) return least;
  for (const WorkerId other : siblings(worker)) {
    const auto* sibling = clocks_.find(other);
    least = std::min(least, sibling ? sibling->clock : Clock());
  }
  return least;
}

std::vector<Contribution> TiedBlocks::gather(Contribution contribution) {
  std::vector<Contribution> update;
  if (!is_tied(contribution.shard_bucket)) {
    update.push_back(std::move(contribution));
    return update;
  }
  const WorkerId lead = stages_.lead_of(contribution.worker);
  const auto entry =
      waiting_.try_emplace({lead, contribution.iteration, contribution.shard_bucket}).first;
  auto& gradients = entry->second;
  gradients.push_back(std::move(contribution));
  std::sort(gradients.begin(), gradients.end(),
            [](const Contribution& a, const Contribution& b) { return a.worker < b.worker; });
  if (!is_complete(gradients)) return update;
  update = std::move(gradients);
  waiting_.erase(entry);
  return update;
}

std::vector<Contribution> TiedBlocks::save() const {
  std::vector<Contribution> all;
  for (const auto& [of, gradients] : waiting_)
    all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

void TiedBlocks::restore(const std::vector<Contribution>& gradients) {
  waiting_.clear();
  for (const Contribution& gradient : gradients) waiting_with(gradient).push_back(gradient);
}

/// An update is complete when each owner has pushed its gradient. It is also complete when an owner
/// is out: that owner pushes nothing more, and its next session works on later leases.
bool TiedBlocks::is_complete(const std::vector<Contribution>& gradients) const {
  if (planted(Mutant::tied_gradient_applied_alone)) return true;
  const Contribution& first = gradients.front();
  bool missing = false;
  for (const std::uint32_t stage : stages_.owners(shard_, first.shard_bucket)) {
    const WorkerId owner = stages_.worker(stages_.lead_of(first.worker), stage);
    const auto* participant = clocks_.find(owner);
    if (!participant || !participant->live || participant->fenced) return true;
    const bool pushed = std::any_of(gradients.begin(), gradients.end(),
                                    [&](const Contribution& one) { return one.worker == owner; });
    missing |= !pushed && participant->clock.value() <= first.iteration.value();
  }
  return !missing;
}

std::vector<std::vector<Contribution>> TiedBlocks::release(WorkerId worker) {
  const WorkerId lead = stages_.lead_of(worker);
  std::vector<std::vector<Contribution>> released;
  for (auto entry = waiting_.lower_bound({lead, Iteration(), 0});
       entry != waiting_.end() && std::get<WorkerId>(entry->first) == lead;) {
    if (is_complete(entry->second)) {
      released.push_back(std::move(entry->second));
      entry = waiting_.erase(entry);
    } else {
      ++entry;
    }
  }
  return released;
}

}  // namespace leeway
