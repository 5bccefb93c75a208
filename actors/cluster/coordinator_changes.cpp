// Coordinator: nodes that join a running job, and nodes that do not hear each other.
#include <algorithm>
#include <utility>

#include "actors/cluster/coordinator.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

// ---- nodes that join ----

std::set<WorkerId> Coordinator::missing() const {
  std::set<WorkerId> workers;
  for (std::uint32_t i = 0; i < placement_.workers.size(); ++i) {
    const NodeIndex node = placement_.workers[i];
    if (node == kNowhere || nodes_[node.value()].has_left()) workers.insert(WorkerId(i));
  }
  for (const Node& node : nodes_)
    if (!node.has_left() && !is_slow(node))
      for (const WorkerId worker : node.takes) workers.erase(worker);
  return workers;
}

void Coordinator::on_offer(PeerId peer, const node::Offer& sent) {
  if (std::ranges::any_of(nodes_,
                          [&](const Node& node) { return node.peer == peer && node.takes_part(); }))
    return refuse(peer, concat("this node takes part in the job of ", options_.who, " already"));
  std::erase_if(offers_, [&](const Offer& offer) { return offer.peer == peer; });
  if (offers_.size() >= limits::kMaxNodes)
    return refuse(peer, concat(limits::kMaxNodes, " nodes wait for a worker of the job of ",
                               options_.who, ", which is the limit; join later"));
  const std::int64_t wait = std::clamp<std::int64_t>(sent.wait.ns, 0, seconds(86400).ns);
  offers_.push_back({peer, sent.name, site_.now_ns() + wait});
  answer_offers();
}

void Coordinator::answer_offers() {
  if (planted(Mutant::offer_forgotten)) {
    for (Offer& offer : offers_) hold(offer, "a worker");
    return offers_.clear();
  }
  auto offers = std::exchange(offers_, {});
  std::erase_if(offers, [this](Offer& offer) { return answer(offer); });
  offers_.insert(offers_.begin(), offers.begin(), offers.end());
}

bool Coordinator::answer(Offer& offer) {
  if (phase_ >= Phase::failed) {
    refuse(offer.peer, concat("the job of ", options_.who, " has ended; join one that is running"));
    return true;
  }
  if (phase_ != Phase::running) {
    hold(offer, "the start of the job");
    return false;
  }
  if (nodes_.size() >= limits::kMaxNodes) {
    refuse(offer.peer, concat("the job of ", options_.who, " has had ", nodes_.size(),
                              " nodes, which is the limit; start another job"));
    return true;
  }
  drop_silent_nodes();
  // The loss of an earlier process at its address will be noticed soon.
  const bool has_twin = std::ranges::any_of(
      nodes_, [&](const Node& node) { return node.name == offer.name && node.takes_part(); });
  auto workers = missing_for(offer.name);
  const bool is_wanted = !workers.empty() || lacks_standby() || separates_replicas();
  if (is_wanted && !has_twin) {
    take_in(offer, std::move(workers));
    return true;
  }
  const auto count = placement_.workers.size();
  if (site_.now_ns() < offer.until) {
    hold(offer, concat("a worker: the job of ", options_.who, " has all its ", count));
    return false;
  }
  refuse(offer.peer, concat("the job of ", options_.who, " has all its ", count,
                            " workers; join when one is missing, wait longer with --wait 10min, or "
                            "start the job with --place worker",
                            count - 1, "=later"));
  return true;
}

void Coordinator::hold(Offer& offer, const std::string& text) {
  if (!std::exchange(offer.held, true)) site_.send(offer.peer, 0, node::Held{text});
}

void Coordinator::take_in(const Offer& offer, std::set<WorkerId> workers) {
  Node node{.name = offer.name, .peer = offer.peer, .joins = true};
  for (Node& earlier : nodes_) {
    if (earlier.name != offer.name) continue;
    earlier.call_at = 0;
    node.call_after = earlier.call_after;
    node.last_refusal = earlier.last_refusal;
  }
  nodes_.push_back(std::move(node));
  ask(nodes_.size() - 1);
  nodes_.back().takes = std::move(workers);
}

bool Coordinator::has_needed_replica(NodeIndex node) const {
  if (placement_.has_shard(node)) return true;
  const bool has_worker = std::ranges::find(placement_.workers, node) != placement_.workers.end();
  for (std::size_t i = 0; i < replicas_.size(); ++i)
    if (placement_.standbys[i] == node && (!has_worker || replicas_[i].primary_lost)) return true;
  return false;
}

void Coordinator::drop_silent_nodes() {
  const std::int64_t now = site_.now_ns();
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.step != Step::running || node.silent_since == 0 ||
        now - node.silent_since < options_.patience.ns || has_needed_replica(index_of(i)))
      continue;
    const std::string reason =
        concat("no sign of life for ", (options_.silence + options_.patience).seconds(),
               " s, and another node joins");
    send(node, node::End{reason});
    site_.leave(*node.peer);
    site_.unlink(index_of(i), reason);
    node_gone(i, reason);
  }
}

std::set<WorkerId> Coordinator::stopped_with(const std::set<WorkerId>& taken) const {
  std::set<WorkerId> workers;
  const auto pipeline_of = [&](WorkerId worker) { return stages_->pipeline_of(worker); };
  for (const WorkerId worker : left_) {
    const NodeIndex there = placement_.workers[worker.value()];
    const bool stays = there == kProgramNode ||
                       (there != kNowhere && nodes_[there.value()].step == Step::running &&
                        !nodes_[there.value()].leaves);
    const bool with_taken = std::any_of(taken.begin(), taken.end(), [&](WorkerId one) {
      return pipeline_of(one) == pipeline_of(worker);
    });
    if (stays && with_taken && !taken.contains(worker)) workers.insert(worker);
  }
  return workers;
}

// ---- nodes that are lost ----

void Coordinator::lose(Node& node, Step step) {
  const std::int64_t now = site_.now_ns();
  // A loss after a long time is not a repeated one.
  if (node.step == Step::running && now - node.since > options_.call_again_most.ns && !node.leaves)
    node.call_after = {};
  node.step = step;
  node.lost_at = now;
  call_later(node);
}

void Coordinator::give_up(std::size_t index, node::Body last, const std::string& reason) {
  Node& node = nodes_[index];
  if (node.peer) {
    send(node, std::move(last));
    site_.leave(*node.peer);
    site_.has_left(index_of(index), reason);
  }
  node.takes.clear();
  lose(node, Step::gone);
}

void Coordinator::call_later(Node& node) {
  // An agent that joined by itself ends with the job, or is started to join again.
  if (std::ranges::find(options_.names, node.name) == options_.names.end()) return;
  const Duration twice{std::min(2 * node.call_after.ns, options_.call_again_most.ns)};
  node.call_after = std::max(options_.call_again, twice);
  node.call_at = site_.now_ns() + node.call_after.ns;
}

bool Coordinator::is_wanted(const Node& node) const {
  if (!missing_for(node).empty() || lacks_standby()) return true;
  // So that it can have the next standby at once, unless it would compute other bits.
  const auto is_like = [&](NodeIndex shard) {
    return node.arithmetic.empty() || node.arithmetic == arithmetic_of(shard);
  };
  return !replicas_.empty() && node.last_refusal.empty() &&
         std::ranges::any_of(placement_.shards, is_like);
}

std::set<WorkerId> Coordinator::missing_for(const std::string& name) const {
  auto workers = missing();
  if (!ask_.user_loops) return workers;
  std::erase_if(workers, [&](WorkerId worker) {
    const NodeIndex home = homes_[worker.value()];
    return home == kNowhere || nodes_[home.value()].name != name;
  });
  return workers;
}

std::set<WorkerId> Coordinator::missing_for(const Node& node) const {
  auto workers = missing_for(node.name);
  std::erase_if(workers, [&](WorkerId worker) {
    const NodeIndex home = homes_[worker.value()];
    if (home == kNowhere) return false;
    const Node& last = nodes_[home.value()];
    // Its own node may run again soon.
    return last.name != node.name && site_.now_ns() - last.lost_at < options_.patience.ns;
  });
  return workers;
}

void Coordinator::call_lost_nodes() {
  if (planted(Mutant::lost_node_not_called)) return;
  const std::int64_t now = site_.now_ns();
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    const bool has_number = node.keeps_number() || nodes_.size() < limits::kMaxNodes;
    if (node.call_at == 0 || now < node.call_at || !has_number || !is_wanted(node)) continue;
    node.call_at = 0;
    site_.call(index_of(i), node.name);
  }
}

void Coordinator::called_again(std::size_t index, const Expected<PeerId>& peer) {
  Node& node = nodes_[index];
  if (phase_ != Phase::running) return;
  if (!peer) return call_later(node);
  // It may have called by itself meanwhile, and wait for a worker or have one.
  const auto is_part = [&](const Node& other) { return other.peer == *peer && other.takes_part(); };
  const auto is_its = [&](const Offer& offer) { return offer.peer == *peer; };
  if (std::ranges::any_of(nodes_, is_part) || std::ranges::any_of(offers_, is_its)) return;
  auto workers = missing_for(node);
  const bool keeps_number = node.keeps_number();
  if (!is_wanted(node) || (!keeps_number && nodes_.size() >= limits::kMaxNodes)) {
    site_.leave(*peer);
    return call_later(node);
  }
  if (!keeps_number) return take_in({*peer, node.name}, std::move(workers));
  node = {.name = node.name,
          .peer = *peer,
          .joins = true,
          .call_after = node.call_after,
          .last_refusal = node.last_refusal};
  ask(index);
  node.takes = std::move(workers);
}

// ---- nodes that do not hear each other ----

std::optional<Address> Coordinator::needs(WorkerId worker, NodeIndex node) const {
  const auto& shards = placement_.shards;
  for (std::uint32_t i = 0; i < shards.size(); ++i)
    if (shards[i] == node) return address_of(ShardId(i));
  for (const WorkerId other : stages_->neighbours(worker))
    if (placement_.workers[other.value()] == node) return address_of(other);
  return std::nullopt;
}

void Coordinator::on_link_state(std::size_t index, const node::LinkState& state) {
  if (state.node >= nodes_.size() || state.node == kProgramNode.value() || state.node == index ||
      nodes_[state.node].has_left())
    return;
  const Pair nodes(index_of(index), NodeIndex(state.node));
  using State = node::LinkState::State;
  if (state.state == State::heard) {
    if (outages_.erase(nodes) > 0) resume_cut_off();
    return;
  }
  auto& outage = outages_.try_emplace(nodes, Outage{site_.now_ns()}).first->second;
  if (state.state == State::gone) outage.gone = true;
}

void Coordinator::check_outages() {
  const std::int64_t now = site_.now_ns();
  for (auto& [nodes, outage] : outages_) {
    // Without the program, neither can launch a worker.
    if (!is_in_touch(nodes.first) || !is_in_touch(nodes.second)) continue;
    const std::int64_t lasted = now - outage.since;
    // A lost node is silent to the other and to this program, but not in the same moment.
    if (lasted > options_.silence.ns) report_standbys(nodes, outage);
    if (lasted <= (outage.gone ? options_.silence : options_.patience).ns) continue;
    if (!std::exchange(outage.handled, true)) handle_outage(nodes);
    const auto& last = outage.relinked_at;
    if (!outage.gone || (last && now - *last < options_.relink_every.ns)) continue;
    outage.relinked_at = now;
    // Of two agents, the one with the larger number calls.
    const auto [low, high] = std::minmax(nodes.first, nodes.second);
    send(nodes_[high.value()], node::Relink{low.value()});
  }
}

void Coordinator::handle_outage(const Pair& nodes) {
  if (!std::exchange(outages_[nodes].is_said, true))
    site_.say(concat("nodes ", name_of(nodes.first), " and ", name_of(nodes.second),
                     " do not hear each other"));
  for (const auto& [here, there] : {nodes, Pair(nodes.second, nodes.first)}) {
    for (std::uint32_t i = 0; i < placement_.workers.size(); ++i) {
      const WorkerId worker(i);
      const auto needed =
          placement_.workers[i] == here && launches_[i] > 0 && !left_.contains(worker)
              ? needs(worker, there)
              : std::nullopt;
      if (!needed || !cut_off_.insert(worker).second) continue;
      send(nodes_[here.value()],
           node::EndLaunch{address_of(worker), launches_[i], cut_off_reason(*needed, here, there)});
    }
  }
  if (!norms_) return;
  // Shards that cannot exchange norms can apply no round. Of the two nodes, always the same one
  // gives up a shard, whichever reports the outage: one whose standby is in sync, and not on the
  // other node, where it has been given up.
  const auto [low, high] = std::minmax(nodes.first, nodes.second);
  for (const auto& [here, there] : {Pair(low, high), Pair(high, low)})
    for (std::uint32_t i = 0; i < placement_.shards.size(); ++i)
      if (placement_.shards[i] == here && placement_.has_shard(there) &&
          (replicas_.empty() || (replicas_[i].in_sync && placement_.standbys[i] != there)))
        return site_.report_lost(shard(i), cut_off_reason(shard(i), there, here));
}

/// Messages under way from a node that has crashed keep it in touch. If the standby's node reports
/// the outage, the primary may be lost, so this waits for longer.
void Coordinator::report_standbys(const Pair& nodes, Outage& outage) {
  const bool is_long = site_.now_ns() - outage.since > options_.patience.ns;
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    const NodeIndex primary = placement_.shards[i], there = placement_.standbys[i];
    const bool concerns =
        nodes == Pair(primary, there) || (is_long && nodes == Pair(there, primary));
    if (concerns && outage.reported.insert(ShardId(i)).second)
      site_.report_lost(standby(i), cut_off_reason(standby(i), primary, there));
  }
}

std::string Coordinator::cut_off_reason(Address actor, NodeIndex here, NodeIndex there) const {
  return concat(actor, " on node ", name_of(there), " cannot be reached from node ", name_of(here));
}

void Coordinator::resume_cut_off() {
  const auto is_cut_off = [&](WorkerId worker) {
    const NodeIndex here = placement_.workers[worker.value()];
    return std::ranges::any_of(outages_, [&](const auto& outage) {
      const auto& [one, other] = outage.first;
      return (one == here && needs(worker, other)) || (other == here && needs(worker, one));
    });
  };
  for (const WorkerId worker : std::set(cut_off_)) {
    const Node& node = nodes_[placement_.workers[worker.value()].value()];
    if (is_cut_off(worker) || planted(Mutant::cut_off_not_resumed)) continue;
    cut_off_.erase(worker);
    if (node.step == Step::running && !node.leaves)
      launch_again(worker, placement_.workers[worker.value()]);
  }
}

}  // namespace leeway
