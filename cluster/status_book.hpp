#pragma once
// StatusBook: the status of a node's actors, collected from its events: clocks of workers, parked
// pulls and the workers that delay them, the last operation of each stage, and the last checkpoint.
#include <map>
#include <mutex>
#include <vector>

#include "actors/outbox.hpp"
#include "messages/node.hpp"

namespace leeway {

class StatusBook {
 public:
  /// Takes every event of the node, from many threads at once.
  void on_event(Address actor, const Event& event);
  /// Adds the clocks and parked pulls of this node's shards, its stages' last operations, and the
  /// last checkpoint if the scheduler is here.
  void fill(node::Status& status) const;

 private:
  struct Shard {
    std::map<WorkerId, std::int64_t> clocks;
    std::map<WorkerId, std::int64_t> parked;  // iteration of the pull
  };
  static void on_shard_event(Shard& shard, const Event& event);

  mutable std::mutex mutex_;
  std::map<std::uint32_t, Shard> shards_;
  event::CheckpointWritten checkpoint_;
  std::int64_t checkpoint_at_ = 0;                // steady time
  std::map<WorkerId, event::StageComputed> did_;  // last operation of each stage
};

}  // namespace leeway
