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

std::int64_t AdaptiveBound::next(std::span<const WorkerTime> workers) {
  const std::int64_t share = percent_lost(workers);
  quiet_ = share < kLowerBelow ? quiet_ + 1 : 0;
  if (share > kRaiseAbove) {
    raise(share > kRaiseFastAbove ? 1 + bound_ / 2 : 1);
  } else if (quiet_ >= patience_) {
    lower();
  }
  return bound_;
}

void AdaptiveBound::raise(std::int64_t by) {
  if (on_trial_) patience_ = std::min(2 * patience_, kMostPatience);
  on_trial_ = false;
  bound_ = std::min(bound_ + by, high_);
}

void AdaptiveBound::lower() {
  quiet_ = 0;
  if (bound_ == low_) return;
  if (on_trial_) patience_ = kLeastPatience;  // the last fall has lasted
  on_trial_ = true;
  --bound_;
}

}  // namespace leeway
