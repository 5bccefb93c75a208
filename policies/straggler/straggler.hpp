#pragma once
// Straggler: by how much a worker is slowed, iteration by iteration.
#include <cstdint>
#include <string>

#include "core/expected.hpp"
#include "core/rng.hpp"
#include "messages/plan.hpp"

namespace leeway {

/// Draws the slow-down of a worker's iterations: always `factor`, or in random bursts of a mean
/// length of `burst` iterations that cover a `share` of all. Depends on the spec and the seed
/// alone. A two-state Markov chain, decided on integers: it leaves a burst with probability
/// 1/burst, enters one with share/(1-share)/burst, and begins as it goes on, slow with probability
/// `share`. Where such an entry would be more than certain, bursts grow to share/(1-share), so that
/// the share holds.
class StragglerModel {
 public:
  StragglerModel(const plan::Straggler& spec, std::uint64_t seed);
  /// Factor (>= 1) by which the next iteration's time grows. Call once an iteration.
  double next();

 private:
  double factor_;
  std::uint64_t enter_ = 0;  // chances in kCertain
  std::uint64_t leave_ = 0;
  Rng rng_;
  bool slow_ = false;
};

/// Parses `3:4x`, `3:4x@20%` or `3:4x@20%/50`: worker 3 takes 4 times as long, in 20% of its
/// iterations, in bursts of 50 on average. The error names what is wrong with the text and shows
/// how to write it.
Expected<plan::Straggler> parse_straggler(const std::string& text);

}  // namespace leeway
