#include "policies/straggler/bursts.hpp"

#include <algorithm>

namespace leeway {

namespace {

/// Probability 1.
constexpr std::uint64_t kCertain = std::uint64_t{1} << 53;

std::uint64_t out_of_certain(double probability) {
  const double scaled = std::clamp(probability, 0.0, 1.0) * static_cast<double>(kCertain);
  return static_cast<std::uint64_t>(scaled);
}

}  // namespace

BurstStraggler::BurstStraggler(const plan::Bursts& spec, Rng rng)
    : factor_(spec.factor), rng_(rng) {
  const double length = spec.length;
  if (spec.share == 1) {
    enter_ = kCertain;
  } else if (spec.share > 0) {
    const double odds = spec.share / (1 - spec.share);
    enter_ = out_of_certain(odds / length);
    leave_ = out_of_certain(1 / std::max(length, odds));
  }
  slow_ = rng_.below(kCertain) < out_of_certain(spec.share);
}

Slowdown BurstStraggler::next(Instant) {
  const double factor = slow_ ? factor_ : 1;
  const bool changes = rng_.below(kCertain) < (slow_ ? leave_ : enter_);
  slow_ = slow_ != changes;
  return {.factor = factor};
}

void BurstStraggler::skip(std::uint64_t iterations) {
  while (iterations-- > 0) next({});
}

}  // namespace leeway
