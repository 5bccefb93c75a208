#include "policies/straggler/sharing.hpp"

namespace leeway {

SharingStraggler::SharingStraggler(const plan::Sharing& spec, Rng rng)
    : spec_(spec),
      position_(spec.phase < 0 ? rng.below(std::uint64_t{spec.on} + spec.off)
                               : static_cast<std::uint64_t>(spec.phase)) {}

Slowdown SharingStraggler::next(Instant) {
  const bool slow = position_ < spec_.on;
  position_ = (position_ + 1) % (std::uint64_t{spec_.on} + spec_.off);
  return {.factor = slow ? spec_.factor : 1};
}

void SharingStraggler::skip(std::uint64_t iterations) {
  const std::uint64_t cycle = std::uint64_t{spec_.on} + spec_.off;
  position_ = (position_ + iterations % cycle) % cycle;
}

}  // namespace leeway
