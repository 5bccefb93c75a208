#pragma once
// Contribution: one worker's push of one bucket, on its way into the weights.
#include "messages/shard_state.hpp"

namespace leeway {

using Contribution = msg::Contribution;

inline bool is_encoded(const msg::BlockData& block) {
  return block.codec != CodecId::none;
}

}  // namespace leeway
