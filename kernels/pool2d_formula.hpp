#pragma once
// keep_larger: the comparison of max pooling.
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

/// Replaces `best` by `next` if `next` is larger or the first NaN. (One comparison per condition,
/// because GCC does not vectorise two joined ones.)
LW_INLINE void keep_larger(float& best, std::int32_t& place, float next, std::int32_t next_place) {
  const float larger = next <= best ? best : next;
  const std::int32_t larger_place = next <= best ? place : next_place;
  place = best == best ? larger_place : place;
  best = best == best ? larger : best;
}

}  // namespace leeway::kernels
