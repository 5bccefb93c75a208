#pragma once
// DecayStraggler: slows down linearly, and stays slow.
#include <algorithm>

#include "policies/straggler/straggler.hpp"

namespace leeway {

/// The factor rises linearly from 1 in the first iteration to `factor` after `iterations`
/// iterations, and stays there: a machine that heats up, or a disk that fills.
class DecayStraggler final : public Straggler {
 public:
  explicit DecayStraggler(const plan::Decay& spec) : spec_(spec) {}
  Slowdown next(Instant) override {
    if (done_ == spec_.iterations) return {.factor = spec_.factor};
    const double progress = static_cast<double>(done_++) / spec_.iterations;
    return {.factor = 1 + (spec_.factor - 1) * progress};
  }
  void skip(std::uint64_t iterations) override {
    done_ +=
        static_cast<std::uint32_t>(std::min<std::uint64_t>(iterations, spec_.iterations - done_));
  }

 private:
  plan::Decay spec_;
  std::uint32_t done_ = 0;  // up to spec_.iterations
};

}  // namespace leeway
