#include "sim/checkers/tied_gradients.hpp"

#include <algorithm>

namespace leeway::sim {

bool TiedGradients::is_recorded(std::uint32_t shard_bucket) const {
  return job_->stages->owners(shard_, shard_bucket).size() > 1 && !job_->stages->asynchronous() &&
         !job_->consistency->by_rounds();
}

TiedGradients::Key TiedGradients::key_of(const Name& gradient) const {
  return {job_->stages->lead_of(gradient.worker), gradient.shard_bucket, gradient.iteration};
}

bool TiedGradients::is_complete(const Key& key, const Update& update) const {
  bool all = true;
  for (const std::uint32_t stage : job_->stages->owners(shard_, std::get<std::uint32_t>(key))) {
    const WorkerId owner = job_->stages->worker(std::get<WorkerId>(key), stage);
    if (!here_.contains(owner)) return true;  // nothing to wait for
    all &= update.gradients.contains(owner);
  }
  return all;
}

void TiedGradients::arrives(const Name& gradient) {
  if (!is_recorded(gradient.shard_bucket)) return;
  const Key key = key_of(gradient);
  auto& updates = updates_[key];
  for (const Update& update : updates)
    if (const auto found = update.gradients.find(gradient.worker);
        found != update.gradients.end() && found->second == gradient.session)
      return;  // a repeat
  auto update = std::find_if(updates.begin(), updates.end(),
                             [](const Update& other) { return !other.closed; });
  if (update == updates.end()) update = updates.insert(updates.end(), Update{});
  update->gradients[gradient.worker] = gradient.session;
  update->closed = is_complete(key, *update);
  latest_ = gradient;
}

void TiedGradients::not_accepted() {
  if (!latest_) return;
  const auto entry = updates_.find(key_of(*latest_));
  auto& update = entry->second.back();  // the one that it has joined
  update.gradients.erase(latest_->worker);
  update.closed = false;
  if (update.gradients.empty()) entry->second.pop_back();
  if (entry->second.empty()) updates_.erase(entry);
  latest_.reset();
}

void TiedGradients::out(WorkerId worker) {
  here_.erase(worker);
  const WorkerId lead = job_->stages->lead_of(worker);
  for (auto entry = updates_.lower_bound({lead, 0, Iteration()});
       entry != updates_.end() && std::get<WorkerId>(entry->first) == lead; ++entry)
    for (Update& update : entry->second) update.closed |= is_complete(entry->first, update);
}

TiedGradients::Applied TiedGradients::applied(const Name& gradient, bool empty) {
  if (!is_recorded(gradient.shard_bucket)) return Applied::begins_update;
  const auto entry = updates_.find(key_of(gradient));
  if (entry == updates_.end()) return Applied::too_early;
  auto& updates = entry->second;
  const auto update = std::find_if(updates.begin(), updates.end(), [&](const Update& other) {
    const auto found = other.gradients.find(gradient.worker);
    return found != other.gradients.end() && found->second == gradient.session;
  });
  if (update == updates.end() || !update->closed) return Applied::too_early;
  const bool begins = !empty && !update->begun;
  update->begun |= begins;
  if (++update->applied == update->gradients.size()) updates.erase(update);
  if (updates.empty()) updates_.erase(entry);
  return begins ? Applied::begins_update : Applied::with_others;
}

}  // namespace leeway::sim
