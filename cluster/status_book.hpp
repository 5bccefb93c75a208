#pragma once
// StatusBook: what can be read from the events of a node about the workers' clocks, and about who
// is parked behind whom.
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
  /// Writes clocks and parked pulls as the shards of this node see them.
  void fill(node::Status& status) const;

 private:
  struct Shard {
    std::map<WorkerId, std::int64_t> clocks;
    std::map<WorkerId, std::int64_t> parked;  // with which iteration
  };
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Shard> shards_;
};

}  // namespace leeway
