#pragma once
// predicted_weights: the weights that a stage pulls in a pipeline without a flush, as its gradient
// will find them.
#include "actors/shard/block_state.hpp"

namespace leeway {

/// The weights after the updates of `lag` rounds in the direction of the optimizer's state.
/// Requires an optimizer that looks ahead. `lag` 0, and parameters that no step changes: the
/// weights.
Blob predicted_weights(const Job& job, const BlockState& state, std::int64_t lag);

}  // namespace leeway
