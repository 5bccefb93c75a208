#include "sim/checkers/halves.hpp"

#include <algorithm>

namespace leeway::sim {

bool Halves::kept(std::uint32_t group) const {
  return job_->stages->owners(shard_, group).size() > 1 && !job_->stages->asynchronous() &&
         !job_->consistency->by_rounds();
}

Halves::Key Halves::key_of(const Name& half) const {
  return {job_->stages->lead_of(half.worker), half.group, half.iteration};
}

bool Halves::complete(const Key& key, const Update& update) const {
  bool all = true;
  for (const std::uint32_t stage : job_->stages->owners(shard_, std::get<std::uint32_t>(key))) {
    const WorkerId owner = job_->stages->worker(std::get<WorkerId>(key), stage);
    if (!here_.contains(owner)) return true;  // nobody waits for anybody
    all &= update.halves.contains(owner);
  }
  return all;
}

void Halves::comes(const Name& half) {
  if (!kept(half.group)) return;
  const Key key = key_of(half);
  auto& updates = updates_[key];
  for (const Update& update : updates)
    if (const auto found = update.halves.find(half.worker);
        found != update.halves.end() && found->second == half.incarnation)
      return;  // again
  auto update = std::find_if(updates.begin(), updates.end(),
                             [](const Update& other) { return !other.closed; });
  if (update == updates.end()) update = updates.insert(updates.end(), Update{});
  update->halves[half.worker] = half.incarnation;
  update->closed = complete(key, *update);
  latest_ = half;
}

void Halves::not_taken() {
  if (!latest_) return;
  const auto entry = updates_.find(key_of(*latest_));
  auto& update = entry->second.back();  // where it was put
  update.halves.erase(latest_->worker);
  update.closed = false;
  if (update.halves.empty()) entry->second.pop_back();
  if (entry->second.empty()) updates_.erase(entry);
  latest_.reset();
}

void Halves::out(WorkerId worker) {
  here_.erase(worker);
  const WorkerId lead = job_->stages->lead_of(worker);
  for (auto entry = updates_.lower_bound({lead, 0, Iteration()});
       entry != updates_.end() && std::get<WorkerId>(entry->first) == lead; ++entry)
    for (Update& update : entry->second) update.closed |= complete(entry->first, update);
}

Halves::Applied Halves::applied(const Name& half, bool empty) {
  if (!kept(half.group)) return Applied::begins_update;
  const auto entry = updates_.find(key_of(half));
  if (entry == updates_.end()) return Applied::too_early;
  auto& updates = entry->second;
  const auto update = std::find_if(updates.begin(), updates.end(), [&](const Update& other) {
    const auto found = other.halves.find(half.worker);
    return found != other.halves.end() && found->second == half.incarnation;
  });
  if (update == updates.end() || !update->closed) return Applied::too_early;
  const bool begins = !empty && !update->begun;
  update->begun |= begins;
  if (++update->applied == update->halves.size()) updates.erase(update);
  if (updates.empty()) updates_.erase(entry);
  return begins ? Applied::begins_update : Applied::with_others;
}

}  // namespace leeway::sim
