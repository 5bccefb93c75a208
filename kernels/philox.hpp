#pragma once
// Philox4x32-10, a counter-based random generator (Salmon, Moraes, Dror and Shaw, SC 2011, section
// 3.3), and the mask that dropout draws from it.
#include <bit>
#include <cstdint>

#include "kernels/simd.hpp"

namespace leeway::kernels {

struct PhiloxWords {
  std::uint32_t a, b, c, d;  // words 0 to 3; an array would prevent vectorised loops
};

/// A recursion that the compiler unrolls, so that loops over it are vectorised.
template <int Rounds>
LW_INLINE PhiloxWords philox_rounds(PhiloxWords x, std::uint32_t key0, std::uint32_t key1) {
  if constexpr (Rounds == 0) {
    return x;
  } else {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * x.a;
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * x.c;
    const PhiloxWords next = {
        static_cast<std::uint32_t>(second >> 32) ^ x.b ^ key0, static_cast<std::uint32_t>(second),
        static_cast<std::uint32_t>(first >> 32) ^ x.d ^ key1, static_cast<std::uint32_t>(first)};
    return philox_rounds<Rounds - 1>(next, key0 + 0x9E3779B9u, key1 + 0xBB67AE85u);
  }
}

LW_INLINE PhiloxWords philox(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
  return philox_rounds<10>(counter, key0, key1);
}

/// The mask of dropout. Element i of a sample is kept iff word i % 4 of block i / 4 is at least
/// probability * 2^32. A block's key is the sample's, low half first; its counter is (block's low
/// half, its high half, salt, 0).
struct DropoutMask {
  std::uint32_t salt, threshold;
  float scale;

  DropoutMask(float probability, std::uint32_t salt_)
      : salt(salt_),
        threshold(static_cast<std::uint32_t>(static_cast<double>(probability) * 0x1p32)),
        scale(1.0f / (1.0f - probability)) {}

  LW_INLINE PhiloxWords block(std::uint64_t key, std::uint64_t index) const {
    return philox(
        {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), salt, 0u},
        static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
  }
  LW_INLINE float apply(float x, std::uint32_t word) const {
    const std::uint32_t kept = word >= threshold ? 0xffffffffu : 0u;  // bit mask: no branch
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x * scale) & kept);
  }
};

}  // namespace leeway::kernels
