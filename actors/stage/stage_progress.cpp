#include "actors/stage/stage_progress.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace leeway {

void StageProgress::start(Iteration first) {
  base_ = announced_ = first;
  next_op_ = finished_ = 0;
  std::fill(updates_.begin(), updates_.end(), 0);
  end_.reset();
}

std::vector<StageProgress::Reading> StageProgress::readings() const {
  std::vector<Reading> found;
  for (const auto& reading : program_.readings(next_op_, finished_))
    found.push_back({reading.version, base_ + reading.first, base_ + reading.last});
  return found;
}

bool StageProgress::update_completes(int chunk) const {
  for (int other = 0; other < static_cast<int>(updates_.size()); ++other)
    if (updates_[static_cast<std::size_t>(other)] + (other == chunk ? 1 : 0) == finished_)
      return false;
  return true;
}

bool StageProgress::count_update(int chunk) {
  ++updates_[static_cast<std::size_t>(chunk)];
  const auto all = *std::min_element(updates_.begin(), updates_.end());
  if (all == finished_) return false;
  LW_CHECK(all == finished_ + 1, all, finished_);
  ++finished_;
  return true;
}

}  // namespace leeway
