#pragma once
// A checksum of data sets, which distinguishes those of equal sizes.
#include <cstdint>

#include "models/datasets/dataset.hpp"

namespace leeway {

/// A checksum over all samples with their labels or targets where those are few, else over some
/// from begin to end: a fraction of a second.
std::uint64_t checksum_of(const TrainTest& data);

}  // namespace leeway
