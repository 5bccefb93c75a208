#pragma once
// Reference: Philox4x32-10 and dropout's mask by their definitions.
#include <array>
#include <cstdint>

#include "kernels/dropout.hpp"

namespace leeway::test::reference {

using Words = std::array<std::uint32_t, 4>;

inline Words philox(Words counter, std::array<std::uint32_t, 2> key) {
  for (std::uint32_t round = 0; round < 10; ++round) {
    const std::uint64_t first = 0xD2511F53ull * counter[0], second = 0xCD9E8D57ull * counter[2];
    const std::uint32_t k0 = key[0] + round * 0x9E3779B9u, k1 = key[1] + round * 0xBB67AE85u;
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ k0,
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ k1,
               static_cast<std::uint32_t>(first)};
  }
  return counter;
}

/// True if dropout keeps element i of the sample with this key.
inline bool kept(std::uint64_t key, std::int64_t i, const kernels::DropoutShape& shape) {
  const auto block = static_cast<std::uint64_t>(i / 4);
  const Words words = philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), shape.salt, 0},
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
  return words[static_cast<std::size_t>(i % 4)] >=
         static_cast<double>(shape.probability) * 4294967296.0;
}

}  // namespace leeway::test::reference
