#pragma once
// random_blob: noise in memory, for benchmarks.
#include <cstdint>

#include "core/rng.hpp"
#include "tensor/blob.hpp"

namespace leeway::bench {

/// Floats in [-0.5, 0.5).
inline Blob random_blob(std::int64_t count, std::uint64_t seed) {
  Rng rng(seed);
  Blob blob = Blob::floats(count);
  for (std::int64_t i = 0; i < count; ++i)
    blob.mutable_floats()[i] = static_cast<float>(rng.uniform() - 0.5);
  return blob;
}

}  // namespace leeway::bench
