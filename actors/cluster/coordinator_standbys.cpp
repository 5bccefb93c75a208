// Coordinator: the standbys of shards, and nodes with shards that leave.
#include <algorithm>
#include <utility>

#include "actors/cluster/coordinator.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

// ---- before the start ----

void Coordinator::check_replicas() {
  const auto hosts = hosts_of(names());
  std::vector<std::string> together;
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    const NodeIndex primary = placement_.shards[i], there = placement_.standbys[i];
    if (arithmetic_of(primary) != arithmetic_of(there)) {
      const NodeIndex blamed = there == kProgramNode ? primary : there;
      nodes_[blamed.value()].problem =
          concat("would compute other results for ", shard(i), " than node ",
                 name_of(blamed == there ? primary : there), ": it has ", arithmetic_of(blamed),
                 ", the other ", arithmetic_of(blamed == there ? primary : there),
                 "; place shard and standby on machines of the same type with --place standby", i,
                 "=NODE, or give --replicas 1");
      continue;
    }
    if (hosts[primary.value()] == hosts[there.value()])
      together.push_back(concat(shard(i), primary == there ? " (one process)" : ""));
  }
  if (!together.empty())
    site_.say(concat("warning: both replicas of ", join(together, ", "),
                     " are on one machine, whose loss ends the run; name nodes of other machines "
                     "with --nodes, or place the standbys there with --place"));
}

// ---- changes ----

void Coordinator::standby_lost(const event::StandbyLost& lost) {
  if (replicas_[lost.shard.value()].standby_launch != lost.launch) return;  // replaced already
  // It may live, and only be unreachable.
  if (placement_.standbys[lost.shard.value()] != kNowhere)
    end_actor(standby_of(lost.shard), "the scheduler has given it up");
  replace_standby(lost.shard);
}

void Coordinator::took_over(const event::StandbyTookOver& promoted) {
  const std::uint32_t shard = promoted.shard.value();
  Replicas& replicas = replicas_[shard];
  if (replicas.standby_launch != promoted.launch || placement_.standbys[shard] == kNowhere) return;
  placement_.shards[shard] = placement_.standbys[shard];
  replicas.primary_launch = promoted.launch + 1;
  replicas.primary_lost = false;
  // A node that has just joined may not have been linked when the program announced it.
  if (placement_.shards[shard] == kProgramNode)
    for (const Node& node : nodes_)
      if (node.step == Step::running)
        send(node, node::Moved{address_of(promoted.shard), kProgramNode.value(),
                               replicas.primary_launch});
  replace_standby(promoted.shard);
  // Other workers than before may need a node that theirs does not hear.
  for (auto& [nodes, outage] : outages_) outage.handled = false;
  resume_cut_off();
}

void Coordinator::in_sync(const event::StandbyInSync& seeded) {
  Replicas& replicas = replicas_[seeded.shard.value()];
  if (replicas.standby_launch != seeded.launch ||
      placement_.standbys[seeded.shard.value()] == kNowhere)
    return;
  replicas.in_sync = true;
  replicas.since = site_.now_ns();
  move_replicas();
}

void Coordinator::ended(Address actor, std::uint32_t launch) {
  if (phase_ != Phase::running || actor.kind != RoleKind::standby ||
      actor.index >= replicas_.size())
    return;
  const Replicas& replicas = replicas_[actor.index];
  // The scheduler decides about standbys that are in sync.
  if (!replicas.in_sync && replicas.standby_launch == launch) replace_standby(ShardId(actor.index));
}

void Coordinator::lose_standbys(NodeIndex node) {
  if (phase_ != Phase::running) return;
  for (std::uint32_t i = 0; i < replicas_.size(); ++i)
    if (placement_.standbys[i] == node && !replicas_[i].in_sync) replace_standby(ShardId(i));
}

void Coordinator::replace_standby(ShardId shard) {
  Replicas& replicas = replicas_[shard.value()];
  replicas.last = std::exchange(placement_.standbys[shard.value()], kNowhere);
  const std::int64_t now = site_.now_ns();
  // A loss after a long time in sync is not a repeated one.
  const std::int64_t most = std::max(replicas.again.ns, 5 * options_.standby_again.ns);
  if (replicas.in_sync && now - replicas.since > most) replicas.again = {};
  replicas.in_sync = false;
  replicas.moves = false;
  replicas.due = now + replicas.again.ns;
  replicas.again = std::clamp(Duration{2 * replicas.again.ns}, options_.standby_again,
                              std::max(options_.standby_again, options_.call_again_most));
  launch_standbys();
  move_replicas();
  let_go();
}

void Coordinator::end_actor(Address actor, const std::string& reason) {
  const NodeIndex there = placement_.node_of(actor);
  const Replicas& replicas = replicas_[actor.index];
  const std::uint32_t launch =
      actor.kind == RoleKind::shard ? replicas.primary_launch : replicas.standby_launch;
  if (there == kProgramNode) return site_.end_launch(actor, launch, reason);
  const Node& node = nodes_[there.value()];
  if (node.step == Step::running) send(node, node::EndLaunch{actor, launch, reason});
}

bool Coordinator::is_in_touch(NodeIndex index) const {
  if (index == kProgramNode) return true;
  if (index == kNowhere) return false;
  const Node& node = nodes_[index.value()];
  return node.step == Step::running && node.silent_since == 0;
}

// ---- new standbys ----

std::optional<NodeIndex> Coordinator::node_for_standby_of(ShardId shard) const {
  const NodeIndex primary = placement_.shards[shard.value()];
  if (planted(Mutant::standby_beside_primary)) return primary;
  // If the job has one node for replicas, it has both.
  const bool has_program = options_.placement.replicas_on(kProgramNode) > 0;
  const bool is_only = options_.names.size() - 1 + (has_program ? 1 : 0) <= 1;
  std::vector<NodeIndex> candidates;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const NodeIndex index = index_of(i);
    const Node& node = nodes_[i];
    const bool is_ready = index == kProgramNode ? has_program : is_in_touch(index) && !node.leaves;
    // A process with a user's loop ends when the user wants.
    const bool is_users = ask_.user_loops && std::ranges::count(homes_, index) > 0;
    if (!is_ready || is_users || (index == primary && !is_only) ||
        outages_.contains({index, primary}) || outages_.contains({primary, index}) ||
        arithmetic_of(index) != arithmetic_of(primary))
      continue;
    candidates.push_back(index);
  }
  if (candidates.empty()) return std::nullopt;
  // The cause of its loss may still be there.
  if (candidates.size() > 1) std::erase(candidates, replicas_[shard.value()].last);
  return node_for_standby(shard, placement_, candidates, hosts_of(names()));
}

bool Coordinator::is_any_joining() const {
  return std::ranges::any_of(nodes_, [this](const Node& node) {
    return node.joins && node.takes_part() && node.step < Step::running && !is_slow(node);
  });
}

bool Coordinator::lacks_standby() const {
  if (is_any_joining()) return false;  // it may have the standby soon
  for (std::uint32_t i = 0; i < replicas_.size(); ++i)
    if (placement_.standbys[i] == kNowhere && !node_for_standby_of(ShardId(i))) return true;
  return false;
}

void Coordinator::launch_standbys() {
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    Replicas& replicas = replicas_[i];
    if (placement_.standbys[i] != kNowhere || site_.now_ns() < replicas.due) continue;
    const auto node = node_for_standby_of(ShardId(i));
    if (!node) continue;
    placement_.standbys[i] = *node;
    replicas.in_sync = false;
    if (!planted(Mutant::standby_launch_not_counted)) ++replicas.standby_launch;
    order_launch(standby(i), *node, replicas.standby_launch);
    site_.say(concat("a standby of ", shard(i), " begins at node ", name_of(*node)));
  }
}

bool Coordinator::shares_node(ShardId shard) const {
  return replicas_[shard.value()].in_sync &&
         placement_.standbys[shard.value()] == placement_.shards[shard.value()];
}

bool Coordinator::separates_replicas() const {
  if (is_any_joining()) return false;  // it may be enough
  for (std::uint32_t i = 0; i < replicas_.size(); ++i)
    if (shares_node(ShardId(i)) && !replicas_[i].moves && !replica_to_move(ShardId(i))) return true;
  return false;
}

// ---- replicas that move ----

std::optional<Address> Coordinator::replica_to_move(ShardId shard) const {
  const Replicas& replicas = replicas_[shard.value()];
  const NodeIndex primary = placement_.shards[shard.value()];
  const NodeIndex there = placement_.standbys[shard.value()];
  if (replicas.moves || replicas.primary_lost || !is_in_touch(primary) || !is_in_touch(there))
    return std::nullopt;
  const auto leaves = [&](NodeIndex node) { return nodes_[node.value()].leaves; };
  const bool is_ready = replicas.in_sync || planted(Mutant::left_without_standby);
  if (is_ready && leaves(primary) && !leaves(there)) return address_of(shard);
  if (leaves(there)) return standby_of(shard);
  if (!shares_node(shard)) return std::nullopt;
  const auto other = node_for_standby_of(shard);
  const auto& listed = options_.names;
  // If it is a node of --nodes, --place has put both replicas on one node.
  if (!other || other == primary || std::ranges::find(listed, name_of(*other)) != listed.end())
    return std::nullopt;
  return standby_of(shard);
}

bool Coordinator::has_confirmed(NodeIndex node, Replicas& replicas) {
  if (node == kProgramNode) return true;
  if (replicas.awaited == node) return nodes_[node.value()].answered_ns >= replicas.awaited_since;
  replicas.awaited = node;
  replicas.awaited_since = site_.now_ns();
  send(nodes_[node.value()], node::Ping{replicas.awaited_since});
  return false;
}

void Coordinator::move_replicas() {
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    Replicas& replicas = replicas_[i];
    const auto moving = replica_to_move(ShardId(i));
    if (!moving) {
      replicas.awaited = kNowhere;
      continue;
    }
    const NodeIndex primary = placement_.shards[i], there = placement_.standbys[i];
    const bool is_primary = moving->kind == RoleKind::shard;
    if (!has_confirmed(is_primary ? there : primary, replicas)) continue;
    replicas.moves = true;
    const bool leaves = nodes_[(is_primary ? primary : there).value()].leaves;
    end_actor(*moving, leaves ? "its node leaves" : "it moves to another node than its primary");
  }
}

void Coordinator::let_go() {
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const bool has_replica = !replicas_.empty() && placement_.replicas_on(index_of(i)) > 0;
    if (node.step != Step::running || !node.leaves || !node.leaving.empty() || has_replica ||
        std::exchange(node.may_go, true))
      continue;
    send(node, node::Left{});
  }
}

}  // namespace leeway
