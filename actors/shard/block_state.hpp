#pragma once
// BlockState: the weights of one block at its shard, with the state of their optimizer.
#include <cstdint>
#include <vector>

#include "messages/worker_shard.hpp"
#include "models/layout.hpp"

namespace leeway {

struct BlockState {
  const Block* block = nullptr;
  Blob weights;
  std::vector<Blob> slots;  // optimizer state; none for statistics
  Version version;
  double progress = 0;       // sum of the weights of the pushes applied
  std::int64_t samples = 0;  // trained on so far

  /// The weights as messages carry them: a reference, not a copy.
  msg::BlockData describe() const {
    return {block->id, version, DType::f32, Shape{block->floats}, weights};
  }
};

}  // namespace leeway
