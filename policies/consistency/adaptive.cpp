#include "policies/consistency/adaptive.hpp"

#include <algorithm>

namespace leeway {
namespace {

/// Times are clamped to this (eleven days), so that no sum over all workers overflows.
constexpr std::int64_t kLongest = 1'000'000'000'000;

std::int64_t bounded_us(std::int64_t us) {
  return std::clamp<std::int64_t>(us, 0, kLongest);
}

}  // namespace

std::int64_t percent_lost(std::span<const WorkerTime> workers) {
  std::int64_t least = kLongest;
  for (const auto& worker : workers)
    if (worker.iterations > 0)
      least = std::min(least, bounded_us(worker.waited_us) / worker.iterations);
  std::int64_t lost = 0, all = 0;
  for (const auto& worker : workers) {
    if (worker.iterations <= 0) continue;
    const std::int64_t waited = bounded_us(worker.waited_us);
    lost += waited - worker.iterations * std::min(least, waited / worker.iterations);
    all += waited + bounded_us(worker.computed_us);
  }
  return all == 0 ? 0 : 100 * lost / all;
}

void AdaptiveBound::resume(const State& state) {
  state_ = state;
  state_.bound = std::clamp(state.bound, low_, high_);
  state_.patience = std::clamp(state.patience, kLeastPatience, kMostPatience);
}

std::int64_t AdaptiveBound::next(std::span<const WorkerTime> workers) {
  const std::int64_t share = percent_lost(workers);
  state_.quiet = share < kLowerBelow ? state_.quiet + 1 : 0;
  if (share > kRaiseAbove) {
    raise(share > kRaiseFastAbove ? 1 + state_.bound / 2 : 1);
  } else if (state_.quiet >= state_.patience) {
    lower();
  }
  return state_.bound;
}

void AdaptiveBound::raise(std::int64_t by) {
  if (state_.on_trial) state_.patience = std::min(2 * state_.patience, kMostPatience);
  state_.on_trial = false;
  state_.bound = std::min(state_.bound + by, high_);
}

void AdaptiveBound::lower() {
  state_.quiet = 0;
  if (state_.bound == low_) return;
  state_.on_trial = true;
  --state_.bound;
}

}  // namespace leeway
