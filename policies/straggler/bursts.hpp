#pragma once
// BurstStraggler: slow in random bursts.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// Bursts of a mean length of `length` iterations that cover a `share` of all. A two-state Markov
/// chain: it leaves a burst with probability 1/length, enters one with share/(1-share)/length, and
/// begins as it goes on, slow with probability `share`. Where such an entry would be more than
/// certain, bursts grow to share/(1-share), so that the share holds.
class BurstStraggler final : public Straggler {
 public:
  BurstStraggler(const plan::Bursts& spec, Rng chances);
  Slowdown next(Instant now) override;

 private:
  double factor_;
  std::uint64_t enter_ = 0;  // chances in kCertain
  std::uint64_t leave_ = 0;
  Rng rng_;
  bool slow_ = false;
};

}  // namespace leeway
