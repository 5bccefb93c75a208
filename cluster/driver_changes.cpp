// Driver: nodes that leave a running job, and others that join it.
#include <algorithm>

#include "cluster/driver.hpp"
#include "core/text.hpp"
#include "messages/envelope.hpp"

namespace leeway {

void Driver::on_leaving(std::size_t index) {
  Node& node = nodes_[index];
  if (!begun_ || finished_ || node.step != Step::running) return;
  node.leaves = true;
  say(concat("node ", node.name, " leaves"));
  for (std::uint32_t i = 0; i < plan_.workers; ++i) {
    const WorkerId worker(i);
    if (placement_.workers[i].value() != index || host().life_of(worker) == 0) continue;
    node.leaving.insert(worker);
  }
  for (const WorkerId worker : node.leaving)
    host().send(kScheduler, encode(Envelope{.body = msg::Leave{worker}}));
  if (node.leaving.empty()) send(node, node::Left{});
}

void Driver::on_left(WorkerId worker) {
  left_.insert(worker);
  for (Node& node : nodes_)
    if (node.leaving.erase(worker) > 0 && node.leaving.empty()) send(node, node::Left{});
}

/// Workers without a node: their node is gone, or they were placed `later`.
std::set<WorkerId> Driver::missing() const {
  std::set<WorkerId> workers;
  for (std::uint32_t i = 0; i < placement_.workers.size(); ++i) {
    const NodeIndex node = placement_.workers[i];
    if (node == kNowhere || nodes_[node.value()].has_left()) workers.insert(WorkerId(i));
  }
  for (const Node& node : nodes_)
    if (!node.has_left())
      for (const WorkerId worker : node.takes) workers.erase(worker);
  return workers;
}

void Driver::on_offer(PeerId peer, const node::Offer& offer) {
  const auto refuse = [&](const std::string& text) {
    mesh_->send(peer, kHost, kHost, encode(NodeEnvelope{0, node::Refused{text}}));
  };
  if (finished_)
    return refuse(concat("the job of ", options_.who, " has ended; join one that is running"));
  if (std::ranges::any_of(nodes_,
                          [&](const Node& node) { return node.peer == peer && node.takes_part(); }))
    return refuse(concat("this node takes part in the job of ", options_.who, " already"));
  if (!begun_) {
    if (early_offers_.size() >= limits::kMaxNodes)
      return refuse(concat("the job of ", options_.who, " has not begun, and ", limits::kMaxNodes,
                           " nodes wait for it, which is the limit; join later"));
    early_offers_.emplace_back(peer, offer);
    return mesh_->send(peer, kHost, kHost, encode(NodeEnvelope{0, node::Held{}}));
  }
  auto workers = missing();
  if (workers.empty())
    return refuse(concat("the job of ", options_.who, " has all its ", plan_.workers,
                         " workers; join when one is missing, or start the job with --place "
                         "worker",
                         plan_.workers - 1, "=later"));
  if (nodes_.size() >= limits::kMaxNodes)
    return refuse(concat("the job of ", options_.who, " has had ", nodes_.size(),
                         " nodes, which is the limit; start another job"));
  say(concat("node ", offer.name, " joins"));
  nodes_.push_back({.name = offer.name, .peer = peer, .joins = true});
  ask(nodes_.size() - 1);
  nodes_.back().takes = std::move(workers);
}

void Driver::on_joined(std::size_t index) {
  Node& node = nodes_[index];
  const NodeIndex self(static_cast<std::uint32_t>(index));
  node_->link(self, node.peer, node.name);
  send(node, node::Begin{});
  // The places of workers that have moved or come back since the start.
  for (std::uint32_t i = 0; i < plan_.workers; ++i) {
    const std::uint32_t life = host().life_of(WorkerId(i));
    const NodeIndex there = placement_.workers[i];
    if (life >= 1 && there != kNowhere && !node.takes.contains(WorkerId(i)))
      send(node, node::Moved{WorkerId(i), there.value(), life});
  }
  const auto taken = std::exchange(node.takes, {});
  for (const WorkerId worker : stopped_with(taken))
    begin_move(worker, placement_.workers[worker.value()]);
  for (const WorkerId worker : taken) begin_move(worker, self);
  finish_moves();
}

/// Stages on other nodes whose pipeline has a worker in `taken`, and which left with that worker:
/// they have stopped, and take part again only in their next lives.
std::set<WorkerId> Driver::stopped_with(const std::set<WorkerId>& taken) const {
  std::set<WorkerId> workers;
  const std::uint32_t stages = plan_.pipeline.stages;
  const auto pipeline_of = [&](WorkerId worker) { return worker.value() / stages; };
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

void Driver::begin_move(WorkerId worker, NodeIndex node) {
  Move move{{worker, node.value(), host().life_of(worker) + 1}, {}};
  left_.erase(worker);
  placement_.workers[worker.value()] = node;
  if (node != kProgramNode) node_->moved(move.moved);
  for (std::size_t other = 1; other < nodes_.size(); ++other) {
    if (other == node.value() || nodes_[other].step != Step::running) continue;
    move.unaware.insert(other);
    send(nodes_[other], move.moved);
  }
  moves_.push_back(std::move(move));
}

void Driver::on_moved(std::size_t index, const node::Moved& moved) {
  bool answer = false;
  for (Move& move : moves_)
    if (move.moved.worker == moved.worker && move.moved.life == moved.life)
      answer = move.unaware.erase(index) > 0 || answer;
  if (answer) return finish_moves();
  // The node has begun this life by itself.
  if (moved.node == index && moved.worker.value() < placement_.workers.size() &&
      placement_.workers[moved.worker.value()].value() == index)
    node_->moved(moved);
}

void Driver::finish_moves() {
  std::erase_if(moves_, [&](const Move& move) {
    if (!move.unaware.empty()) return false;
    // All other nodes know the new place, and accept messages from it.
    if (NodeIndex(move.moved.node) == kProgramNode)
      node_->moved(move.moved);
    else
      send(nodes_[move.moved.node], move.moved);
    say(concat("worker ", move.moved.worker, " continues at node ", nodes_[move.moved.node].name));
    return true;
  });
}

}  // namespace leeway
