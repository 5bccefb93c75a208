#pragma once
// challenge: the one choice that max pooling makes, over and over.
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

/// `next` takes the place of `best` when it is larger, or the first NaN. (One comparison a choice:
/// of two, joined, GCC makes no vector code.)
LW_INLINE void challenge(float& best, std::int32_t& place, float next, std::int32_t next_place) {
  const float larger = next <= best ? best : next;
  const std::int32_t larger_place = next <= best ? place : next_place;
  place = best == best ? larger_place : place;
  best = best == best ? larger : best;
}

}  // namespace leeway::kernels
