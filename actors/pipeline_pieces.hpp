#pragma once
// From a model and the times of its layers to what a partition is searched over.
#include <cstdint>
#include <span>
#include <vector>

#include "models/layer_times.hpp"
#include "models/pieces.hpp"
#include "policies/pipeline/partition.hpp"

namespace leeway {

/// `times`: per layer of the model; each below pipeline::kMostOfPiece together, which they are for
/// any micro-batch that takes less than three days.
std::vector<pipeline::Piece> pipeline_pieces(const std::vector<ModelPiece>& pieces,
                                             std::span<const LayerTime> times);

}  // namespace leeway
