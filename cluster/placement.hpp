#pragma once
// Placement: which node of a cluster each actor of a job is on.
#include <cstdint>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/expected.hpp"
#include "core/ids.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Of one job. Node 0 is the program that began it: scheduler and monitor are there. The others are
/// node agents, in the order in which they were given.
using NodeIndex = Id<struct NodeTag>;
inline constexpr NodeIndex kProgramNode{0};
/// Where a worker is that a node will bring which joins later.
inline constexpr NodeIndex kNowhere{0xffffffff};

struct Placement {
  std::uint32_t nodes = 1;        // the program's among them
  std::vector<NodeIndex> shards;  // by number
  std::vector<NodeIndex> workers;
  bool operator==(const Placement&) const = default;

  NodeIndex node_of(Address actor) const;
};

/// Spreads shards and workers over `agents` nodes, 1 to `agents`, in turn, and as `place` says:
/// items with commas between such as "shard0=1", "worker2=3", "shards=1+2" (in turn), "workers=2",
/// "worker5=later". Without agents all is on the program's node. The error names the item and says
/// what would be right.
///
/// Workers that are stages of pipelines are not spread in turn, but as many on each node as on the
/// others (or one more), neighbours together: where there are nodes for all stages each has its
/// own, else as few links as can be go between nodes, and a node that is lost takes as few
/// pipelines with it as can be.
Expected<Placement> place_actors(std::uint32_t agents, const Plan& plan, const std::string& place);

}  // namespace leeway
