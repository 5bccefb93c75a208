#pragma once
// permutation: samples in a random order, such as that of an epoch.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "core/rng.hpp"

namespace leeway {

/// A uniform shuffle (Fisher, Yates) of 0 .. size-1. Requires size >= 0.
std::vector<std::int64_t> permutation(std::int64_t size, Rng rng);

/// The order in which an epoch visits the samples, determined by size, seed and epoch.
std::vector<std::int64_t> epoch_permutation(std::int64_t size, std::uint64_t seed, Epoch epoch);

}  // namespace leeway
