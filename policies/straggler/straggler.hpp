#pragma once
// Straggler: by how much a worker is slowed, iteration by iteration.
#include <cstdint>

#include "core/rng.hpp"
#include "messages/plan.hpp"

namespace leeway {

/// Draws the slow-down of a worker's iterations: always `factor`, or in random bursts of a mean length of `burst` iterations that cover
/// a `share` of all. Depends on the seed and the worker alone. The two-state Markov chain on integers: leaves a burst with probability
/// 1/burst, enters one with share/(1-share)/burst.
class StragglerModel {
 public:
  StragglerModel(const plan::Straggler& spec, std::uint64_t seed);
  /// Factor (>= 1) by which the next iteration's time grows. Call once an iteration.
  double next();

 private:
  plan::Straggler spec_;
  Rng rng_;
  bool slow_ = false;
};

/// Parses `3:4x`, `3:4x@20%` or `3:4x@20%/50`: worker 3 takes 4 times as long, in 20% of its iterations, in bursts of 50 on average.
Expected<plan::Straggler> parse_straggler(const std::string& text);

}  // namespace leeway
