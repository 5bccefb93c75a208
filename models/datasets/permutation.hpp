#pragma once
// epoch_permutation: the order in which an epoch visits the samples.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace leeway {

/// A uniform shuffle (Fisher, Yates) of 0 .. size-1, determined by size, seed and epoch. Requires
/// size >= 0.
std::vector<std::int64_t> epoch_permutation(std::int64_t size, std::uint64_t seed, Epoch epoch);

}  // namespace leeway
