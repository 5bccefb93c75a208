#pragma once
// Contribution: one worker's push of one bucket, on its way into the weights.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "messages/worker_shard.hpp"

namespace leeway {

struct Contribution {
  WorkerId worker;
  Session session;
  Iteration iteration;
  std::uint32_t bucket = 0;        // index among the worker's buckets at this shard
  std::uint32_t shard_bucket = 0;  // index among the shard's buckets
  double weight = 0;               // samples / samples of one round
  std::uint32_t samples = 0;
  float scale = 1;  // factor of its gradients
  /// The samples of tied gradients count once: with the gradient of the first owner.
  bool first_owner = true;
  std::uint32_t owners = 1;            // stages of a pipeline that push these blocks
  std::vector<msg::BlockData> blocks;  // as in the bucket; none for an empty push

  bool is_empty() const { return blocks.empty(); }
};

}  // namespace leeway
