#pragma once
// validate_push: whether a push fits the blocks that a worker has on a shard.
#include "actors/job.hpp"
#include "messages/worker_shard.hpp"

namespace leeway {

/// Checks all fields except the iteration. `share`: the worker's buckets at the shard.
Status validate_push(const msg::Push& push, const StageShare::AtShard& share, const Job& job);

}  // namespace leeway
