#pragma once
// Several arrays in one block of scratch memory.
#include <cstddef>

namespace leeway::kernels {

/// The bytes of an array, rounded up so that the next one is aligned to 64 bytes too.
constexpr std::size_t padded_bytes(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace leeway::kernels
