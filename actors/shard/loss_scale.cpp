#include "actors/shard/loss_scale.hpp"

#include <algorithm>

namespace leeway {

LossScale::LossScale(bool by_rounds, State first) : by_rounds_(by_rounds), steps_{first} {}

void LossScale::overflowed(WorkerId worker, Iteration iteration, float scale) {
  if (by_rounds_) {
    float& least = pending_.try_emplace(iteration, scale).first->second;
    least = std::min(least, scale);
    return;
  }
  const auto [counted, is_first] = counted_.try_emplace(worker, iteration);
  if (!is_first && iteration <= counted->second) return;
  counted->second = iteration;
  grow(round_of(iteration));
  halve(round_of(iteration), scale);
}

LossScale::State LossScale::state_at(Iteration iteration) {
  while (!pending_.empty() && pending_.begin()->first < iteration) {
    const auto [round, scale] = *pending_.begin();
    pending_.erase(pending_.begin());
    grow(round);
    halve(round + 1, scale);
  }
  const Iteration round = round_of(iteration);
  grow(round);
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step)
    if (step->since <= round) return *step;
  return steps_.front();
}

/// A push with an older, larger scale does not lower it again.
void LossScale::halve(Iteration since, float scale) {
  const State& last = steps_.back();
  add({std::max(since, last.since), std::max(std::min(last.scale, scale / 2), 1.0f),
       last.skipped + 1});
}

void LossScale::grow(Iteration round) {
  while (steps_.back().scale < kMost && round - steps_.back().since >= kGrowthInterval) {
    State next = steps_.back();
    next.since = next.since + kGrowthInterval;
    next.scale *= 2;
    add(next);
  }
}

void LossScale::add(const State& step) {
  steps_.push_back(step);
  if (steps_.size() > kKept) steps_.pop_front();
}

msg::LossScaleState LossScale::save() const {
  msg::LossScaleState state{.progress = progress_};
  state.steps.assign(steps_.begin(), steps_.end());
  for (const auto& [round, scale] : pending_) state.pending.push_back({round, scale});
  for (const auto& [worker, iteration] : counted_) state.counted.push_back({worker, iteration});
  return state;
}

void LossScale::restore(const msg::LossScaleState& state) {
  progress_ = state.progress;
  if (!state.steps.empty()) steps_.assign(state.steps.begin(), state.steps.end());
  pending_.clear();
  for (const auto& one : state.pending) pending_[one.round] = one.scale;
  counted_.clear();
  for (const auto& one : state.counted) counted_[one.worker] = one.iteration;
}

}  // namespace leeway
