#include "policies/straggler/sharing.hpp"

namespace leeway {

SharingStraggler::SharingStraggler(const plan::Sharing& spec, Rng chances)
    : spec_(spec), place_(chances.below(std::uint64_t{spec.on} + spec.off)) {}

Slowdown SharingStraggler::next(Instant) {
  const bool slow = place_ < spec_.on;
  place_ = (place_ + 1) % (std::uint64_t{spec_.on} + spec_.off);
  return {.factor = slow ? spec_.factor : 1};
}

}  // namespace leeway
