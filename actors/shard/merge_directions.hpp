#pragma once
// Radial-directional merge of the pseudo-gradients of a round: their mean length along their mean
// direction.
//
// Workers that train apart move in nearly orthogonal directions, so the mean of M pseudo-gradients
// is up to sqrt(M) times shorter than each of them, and its length depends on their number. The
// merge keeps the length:
//
//   (sum of a |d| / sum of a) * unit(sum of a unit(d)),   unit(0) = 0,   a = samples^2 / steps
//
// for each tensor; a tensor that is divided into blocks is merged block by block. Embeddings and
// statistics of batch norm get the mean weighted by a. Source: the Decoupled DiLoCo team,
// "Decoupled DiLoCo for Resilient Distributed Pre-training", arXiv 2604.21428, 2026.
#include <vector>

#include "kernels/executor.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"

namespace leeway {

/// A pseudo-gradient of the block, on the executor's device.
struct Direction {
  Blob values;
  double weight = 1;  // a, above 0
};

/// Requires a direction.
Blob merge_directions(Executor& on, const Model& model, const Block& block,
                      const std::vector<Direction>& directions);

}  // namespace leeway
