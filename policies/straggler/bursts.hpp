#pragma once
// BurstStraggler: slow in random bursts.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// Bursts with a mean length of `length` iterations that cover `share` of all iterations. A
/// two-state Markov chain leaves a burst with probability 1/length and enters one with
/// share/(1-share)/length. It starts slow with probability `share`, its stationary distribution. If
/// the entry probability would exceed 1, bursts last share/(1-share) iterations instead, which
/// preserves the share.
class BurstStraggler final : public Straggler {
 public:
  BurstStraggler(const plan::Bursts& spec, Rng rng);
  Slowdown next(Instant now) override;
  void skip(std::uint64_t iterations) override;

 private:
  double factor_;
  std::uint64_t enter_ = 0;  // probabilities, out of kCertain
  std::uint64_t leave_ = 0;
  Rng rng_;
  bool slow_ = false;
};

}  // namespace leeway
