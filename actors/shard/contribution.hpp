#pragma once
// Contribution: one worker's push of one bucket, on its way into the weights.
#include "messages/shard_state.hpp"

namespace leeway {

using Contribution = msg::Contribution;

}  // namespace leeway
