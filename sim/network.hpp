#pragma once
// Network: arrival times of messages. Each node has one link with a queue per direction, so
// concurrent pushes to one shard delay each other. Messages between two actors stay in order.
#include <unordered_map>
#include <vector>

#include "core/rng.hpp"
#include "messages/message.hpp"
#include "sim/world.hpp"

namespace leeway::sim {

using ActorIndex = std::uint32_t;
using MachineIndex = std::uint32_t;

/// Size of a message on a link.
std::size_t bytes_of(const Message& message);

class Network {
 public:
  Network(const World& world, std::uint64_t seed);

  void add_node() { nodes_.push_back({}); }

  /// The arrival time of `bytes` sent now. Occupies the links of both nodes if they differ. `extra`
  /// is added to the latency; later messages do not overtake.
  Instant arrival(ActorIndex from, MachineIndex from_node, ActorIndex to, MachineIndex to_node,
                  std::size_t bytes, Instant now, Duration extra = {});
  /// The arrival time of a message: `at`, or just after the previous message between these actors.
  Instant in_order(ActorIndex from, ActorIndex to, Instant at);
  /// The link of a node takes `factor` times as long per byte. Factors multiply.
  void slow_node(MachineIndex node, double factor) { nodes_[node].slow_down *= factor; }
  void restore_node(MachineIndex node, double factor) { nodes_[node].slow_down /= factor; }

 private:
  struct Links {
    Instant out_free, in_free;  // when each direction becomes free
    double slow_down = 1;
  };
  Duration latency_of(Duration usual);
  Duration transfer(std::size_t bytes) const;

  const World world_;
  bool delayed_ = false;  // after the first extra delay, links no longer keep the order
  Rng rng_;
  std::vector<Links> nodes_;
  /// Last arrival by sender and receiver, if no link keeps the order. Never iterated over.
  std::unordered_map<std::uint64_t, Instant> last_;
};

}  // namespace leeway::sim
