#pragma once
// BlockState: the weights of one block at its shard, with the state of their optimizer.
#include <cstdint>
#include <vector>

#include "actors/job.hpp"
#include "messages/worker_shard.hpp"
#include "models/layout.hpp"

namespace leeway {

struct BlockState {
  const Block* block = nullptr;
  Blob weights;
  std::vector<Blob> slots;  // optimizer state, maybe packed (slot_floats); none for statistics
  Version version;
  double progress = 0;       // sum of the weights of the pushes applied
  std::int64_t samples = 0;  // trained on so far

  /// The weights as messages carry them: a reference, not a copy.
  msg::BlockData describe() const {
    return {block->id, version, DType::f32, Shape{block->floats}, weights};
  }
};

/// An array of optimizer state as `state` keeps it. `floats`: on the shard's device.
inline Blob slot_of(const Job& job, const BlockState& state, int slot, Blob floats) {
  if (!job.shard_settings.eight_bit_state) return floats;
  return pack_state(job.optimizer->state_range(slot), floats, state.block->floats);
}

/// The floats of an array of optimizer state.
inline Blob slot_floats(const Job& job, const BlockState& state, int slot) {
  const Blob& blob = state.slots[static_cast<std::size_t>(slot)];
  if (!job.shard_settings.eight_bit_state) return blob;
  return unpack_state(job.optimizer->state_range(slot), blob, state.block->floats);
}

}  // namespace leeway
