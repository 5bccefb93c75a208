#pragma once
// How mean gradients over different numbers of samples add up to the mean over all of them.
#include <cstdint>

namespace leeway {

/// Factor of a mean gradient over `samples` in the mean over `total`. Workers that sum
/// micro-batches and shards that sum workers use this one, with kernels::accumulate, so that both
/// give the same bits.
inline float mean_scale(std::int64_t samples, std::int64_t total) {
  return static_cast<float>(static_cast<double>(samples) / static_cast<double>(total));
}

}  // namespace leeway
