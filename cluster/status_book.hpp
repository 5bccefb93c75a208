#pragma once
// StatusBook: what can be read from the events of a node about the workers' clocks, about who is
// parked behind whom, and about what stages of pipelines have done last.
#include <map>
#include <mutex>
#include <vector>

#include "actors/outbox.hpp"
#include "messages/node.hpp"

namespace leeway {

class StatusBook {
 public:
  /// Told of every event, from many threads at once.
  void on_event(Address actor, const Event& event);
  /// Writes clocks and parked pulls as the shards of this node see them, and its stages' last
  /// operations.
  void fill(node::Status& status) const;

 private:
  struct Shard {
    std::map<WorkerId, std::int64_t> clocks;
    std::map<WorkerId, std::int64_t> parked;  // with which iteration
  };
  struct Did {
    Event::Kind kind;
    std::int64_t iteration, micro_batch;
  };
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Shard> shards_;
  std::map<WorkerId, Did> did_;  // stages here: the last operation
};

}  // namespace leeway
