#include "actors/stage/weight_versions.hpp"

#include <utility>

namespace leeway {

void WeightVersions::pull(std::int64_t version, Iteration pulled, Clock own_clock, Outbox& out) {
  if (!held_.try_emplace(version, Held{pulled, nullptr}).second) return;
  parameters_.pull(pulled, own_clock, out);
}

std::shared_ptr<DeviceWeights> WeightVersions::find(std::int64_t version, Instant now) {
  const auto found = held_.find(version);
  if (found == held_.end()) return nullptr;
  Held& held = found->second;
  if (!held.weights && parameters_.arrived(held.pulled))
    held.weights = std::make_shared<DeviceWeights>(job_, parameters_.take(held.pulled));
  if (!held.weights && !blocked_since_) blocked_since_ = now;
  if (held.weights && blocked_since_) {
    blocked_ += now - *blocked_since_;
    blocked_since_.reset();
  }
  return held.weights;
}

std::optional<std::int64_t> WeightVersions::newest() const {
  if (held_.empty()) return std::nullopt;
  return held_.rbegin()->first;
}

void WeightVersions::forget_below(std::int64_t version) {
  forget_until(held_.lower_bound(version));
}

void WeightVersions::clear() {
  forget_until(held_.end());
  blocked_since_.reset();
  blocked_ = {};
}

void WeightVersions::forget_until(std::map<std::int64_t, Held>::iterator end) {
  for (auto at = held_.begin(); at != end; ++at)
    if (!at->second.weights) parameters_.forget(at->second.pulled);
  held_.erase(held_.begin(), end);
}

void WeightVersions::hand_over(ComputeEngine& engine) {
  for (auto& [version, held] : held_) engine.keep(std::move(held.weights));
  held_.clear();
}

}  // namespace leeway
