#pragma once
// The mark of data sets, by which processes of a cluster distinguish them.
#include <cstdint>

#include "messages/node.hpp"
#include "models/datasets/dataset.hpp"

namespace leeway {

/// Sizes, shapes, and the given checksum of the contents.
node::DataMark mark_of(const TrainTest& data, std::uint64_t checksum);

}  // namespace leeway
