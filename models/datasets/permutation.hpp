#pragma once
// The order in which an epoch visits the samples.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace leeway {

/// The numbers 0 .. size-1 in an order that depends on size, seed and epoch alone; a uniform
/// shuffle (Fisher, Yates). Requires size >= 0.
std::vector<std::int64_t> epoch_permutation(std::int64_t size, std::uint64_t seed, Epoch epoch);

}  // namespace leeway
