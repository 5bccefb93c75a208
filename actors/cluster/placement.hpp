#pragma once
// Placement: which node of a cluster each actor of a job is on.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "core/ids.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The number of a node in a job. Node 0 is the program, with the scheduler and the monitor. The
/// others are node agents, in the order of --nodes.
using NodeIndex = Id<struct NodeTag>;
inline constexpr NodeIndex kProgramNode{0};
/// The place of a worker whose node joins later.
inline constexpr NodeIndex kNowhere{0xffffffff};

struct Placement {
  std::uint32_t nodes = 1;        // with the program's
  std::vector<NodeIndex> shards;  // by number
  std::vector<NodeIndex> workers;
  bool operator==(const Placement&) const = default;

  NodeIndex node_of(Address actor) const;
  bool has_shard(NodeIndex node) const {
    return std::find(shards.begin(), shards.end(), node) != shards.end();
  }
  /// "shard 0, worker 2".
  std::string actors_text(NodeIndex node) const;
};

/// Spreads shards and workers over the nodes 1 to `agents` in turn, except where `place` differs: a
/// list such as "shard0=1,worker2=3", "shards=1+2" (in turn), "workers=2", "worker5=later". Without
/// agents, all actors are on the program's node. The error names the wrong item and a correct one.
///
/// Stages of pipelines are spread in rows instead: each node has equally many (or one more), and
/// neighbours are together. This needs the fewest links between nodes, and the loss of a node ends
/// the fewest pipelines.
Expected<Placement> place_actors(std::uint32_t agents, const Plan& plan, const std::string& place);

}  // namespace leeway
