#include "policies/straggler/decay.hpp"

namespace leeway {

Slowdown DecayStraggler::next(Instant) {
  if (done_ == spec_.iterations) return {.factor = spec_.factor};
  const double progress = static_cast<double>(done_++) / spec_.iterations;
  return {.factor = 1 + (spec_.factor - 1) * progress};
}

}  // namespace leeway
