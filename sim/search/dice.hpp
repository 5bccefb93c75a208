#pragma once
// Random numbers in a range, for drawn plans.
#include <cstdint>

#include "core/rng.hpp"

namespace leeway::sim {

/// Both ends included.
inline std::uint32_t between(Rng& rng, std::uint32_t least, std::uint32_t most) {
  return least + static_cast<std::uint32_t>(rng.below(std::uint64_t{most} - least + 1));
}
inline double uniform(Rng& rng, double least, double most) {
  return least + (most - least) * rng.uniform();
}

}  // namespace leeway::sim
