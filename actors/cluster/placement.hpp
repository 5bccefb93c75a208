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
/// The place of a worker whose node joins later, and of a standby that has no node.
inline constexpr NodeIndex kNowhere{0xffffffff};

struct Placement {
  std::uint32_t nodes = 1;        // with the program's
  std::vector<NodeIndex> shards;  // by number
  std::vector<NodeIndex> workers;
  std::vector<NodeIndex> standbys;  // by number of the shard; empty: the plan has none
  bool operator==(const Placement&) const = default;

  NodeIndex node_of(Address actor) const;
  /// The place of a shard, worker or standby of the job, to change it; null for other actors.
  NodeIndex* find(Address actor);
  bool has_shard(NodeIndex node) const { return std::ranges::find(shards, node) != shards.end(); }
  /// Shards and standbys on the node.
  std::ptrdiff_t replicas_on(NodeIndex node) const {
    return std::ranges::count(shards, node) + std::ranges::count(standbys, node);
  }
  /// "shard 0, worker 2".
  std::string actors_text(NodeIndex node) const;
};

/// Spreads shards and workers over the nodes 1 to `agents` in turn, except where `place` differs: a
/// list such as "shard0=1,worker2=3", "shards=1+2" (in turn), "workers=2", "worker5=later". Without
/// agents, all actors are on the program's node. The error names the wrong item and a correct one.
///
/// A standby is on another node than its shard, if there is one, and on another host, if `hosts`
/// (of all nodes; empty: unknown) has one.
///
/// Workers of pipelines and of host groups are spread in rows instead: each node has equally many
/// (or one more), and neighbours are together. This needs the fewest links between nodes, and the
/// loss of a node ends the fewest members.
Expected<Placement> place_actors(std::uint32_t agents, const Plan& plan, const std::string& place,
                                 const std::vector<std::string>& hosts = {});

/// The plan with the number of workers of its host groups, if it has `--aggregate host`: those of a
/// node. The workers of each group must be adjacent, and on one node.
Expected<Plan> with_host_groups(Plan plan, const Placement& placement);

/// The hosts of names such as "10.0.0.7:4242", to tell whether two nodes share one.
std::vector<std::string> hosts_of(const std::vector<std::string>& names);

/// Of the candidates for a standby, the one with the fewest replicas; on another host than its
/// shard if one is. The shard's own node only if there is no other. Requires a candidate.
NodeIndex node_for_standby(ShardId shard, const Placement& placement,
                           const std::vector<NodeIndex>& candidates,
                           const std::vector<std::string>& hosts);

}  // namespace leeway
