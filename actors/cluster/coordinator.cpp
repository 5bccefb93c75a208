#include "actors/cluster/coordinator.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

Coordinator::Coordinator(CoordinatorOptions options, std::uint64_t number, Site& site)
    : options_(std::move(options)), number_(number), site_(site), placement_(options_.placement) {
  for (const auto& name : options_.names) nodes_.push_back({.name = name});
}

void Coordinator::finish() {
  enter(Phase::ending);
  for (const Node& node : nodes_)
    if (node.takes_part()) send(node, node::End{"the run has ended"});
  for (Offer& offer : std::exchange(offers_, {})) answer(offer);
  tick();
}

void Coordinator::abandon(const std::string& reason) {
  if (phase_ >= Phase::ending) return;
  for (const Node& node : nodes_)
    if (node.takes_part()) send(node, node::End{reason});
  enter(Phase::ended);
}

// ---- inputs ----

void Coordinator::called(NodeIndex index, const Expected<PeerId>& peer) {
  Node& node = nodes_.at(index.value());
  if (node.has_left()) return called_again(index.value(), peer);
  if (node.step != Step::calling) return;
  node.step = Step::none;
  if (!peer) {
    // The list of problems begins with the name, as this error does.
    const std::string& text = peer.error().text;
    const std::string name = node.name + ": ";
    node.problem = text.starts_with(name) ? text.substr(name.size()) : text;
  } else {
    for (const Node& other : nodes_)
      if (other.step == Step::called && other.peer == *peer)
        node.problem = concat("is the same node as ", other.name, "; name it once");
    if (node.problem.empty()) {
      node.peer = *peer;
      enter(node, Step::called);
    }
  }
  advance();
}

void Coordinator::received(PeerId peer, std::uint64_t job, const node::Body& body) {
  const auto node = node_of(peer);
  if (node && job == number_) {
    handle(node->value(), body);
  } else {
    on_stranger(peer, job, body);
  }
  advance();
  answer_offers();
}

void Coordinator::silent(PeerId peer) {
  const auto index = node_of(peer);
  if (!index) return;
  Node& node = nodes_[index->value()];
  node.silent_since = site_.now_ns();
  if (phase_ == Phase::running)
    site_.say(
        concat("node ", node.name, ": no sign of life for ", options_.silence.seconds(), " s"));
}

void Coordinator::heard(PeerId peer) {
  const auto index = node_of(peer);
  if (!index) return;
  Node& node = nodes_[index->value()];
  node.silent_since = 0;
  if (phase_ == Phase::running) site_.say(concat("node ", node.name, " is heard again"));
}

void Coordinator::gone(PeerId peer, const std::string& reason) {
  std::erase_if(offers_, [&](const Offer& offer) { return offer.peer == peer; });
  if (const auto index = node_of(peer)) node_gone(index->value(), reason);
  advance();
  answer_offers();
}

void Coordinator::on_event(const Event& event) {
  if (phase_ != Phase::running) return;
  if (const auto* worker = event.as<event::Left>()) left(worker->worker);
  if (const auto* lost = event.as<event::PrimaryLost>())
    replicas_[lost->shard.value()].primary_lost = true;
  if (const auto* lost = event.as<event::StandbyLost>()) standby_lost(*lost);
  if (const auto* promoted = event.as<event::StandbyTookOver>()) took_over(*promoted);
  if (const auto* seeded = event.as<event::StandbyInSync>()) in_sync(*seeded);
  answer_offers();
}

bool Coordinator::concerns(const Event& event) {
  return event.as<event::Left>() || event.as<event::PrimaryLost>() ||
         event.as<event::StandbyLost>() || event.as<event::StandbyTookOver>() ||
         event.as<event::StandbyInSync>();
}

void Coordinator::left(WorkerId worker) {
  left_.insert(worker);
  for (Node& node : nodes_) node.leaving.erase(worker);
  let_go();
}

void Coordinator::tick() {
  check_limits();
  advance();
  if (phase_ == Phase::shipping) show_shipping();
  if (phase_ == Phase::running) {
    check_outages();
    launch_standbys();
    move_replicas();
    let_go();
    answer_offers();
    call_lost_nodes();
  }
  if (phase_ != Phase::ending) return;
  // A silent node gets less time than a node that answers.
  const std::int64_t took = site_.now_ns() - phase_since_;
  const auto limit = [&](const Node& node) {
    return node.silent_since != 0 ? options_.silent_end_limit : options_.end_limit;
  };
  for (const Node& node : nodes_)
    if (node.takes_part() && took <= limit(node).ns) return;
  for (const Node& node : nodes_) {
    if (!node.takes_part()) continue;
    site_.say(
        concat("node ", node.name,
               node.silent_since != 0
                   ? std::string(" is silent; its actors end when it continues")
                   : concat(" has not confirmed the end of its actors within ",
                            options_.end_limit.seconds(), " s; look at the node's terminal")));
  }
  enter(Phase::ended);
}

// ---- messages ----

std::optional<NodeIndex> Coordinator::node_of(PeerId peer) const {
  // A node that has left may have joined again under the same peer, and a higher number.
  for (std::size_t i = nodes_.size(); i-- > 1;)
    if (nodes_[i].peer == peer && nodes_[i].step >= Step::called) return index_of(i);
  return std::nullopt;
}

std::vector<std::string> Coordinator::names() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_) names.push_back(node.name);
  return names;
}

void Coordinator::handle(std::size_t index, const node::Body& body) {
  Node& node = nodes_[index];
  if (const auto* answer = std::get_if<node::Answer>(&body)) return on_answer(index, *answer);
  if (std::holds_alternative<node::LoadingData>(body)) return on_loading(node);
  if (const auto* pong = std::get_if<node::Pong>(&body)) return on_pong(index, *pong);
  if (const auto* stored = std::get_if<node::Stored>(&body)) return on_stored(index, *stored);
  if (std::holds_alternative<node::Linked>(body)) return on_linked(index);
  if (const auto* refused = std::get_if<node::Refused>(&body)) {
    site_.say(concat("node ", node.name, ": ", refused->text));
    return has_problem(index, refused->text);
  }
  if (std::holds_alternative<node::Done>(body)) {
    if (node.has_left()) return;
    if (node.asked_again > 0) {
      --node.asked_again;
      return;
    }
    if (phase_ < Phase::running && node.problem.empty())
      node.problem = "has given up its part of the job; look at its log";
    if (node.leaves) node.call_after = options_.call_again_most;
    lose(node, Step::ended);
    lose_standbys(index_of(index));
    return site_.has_left(index_of(index), "the node has left the job");
  }
  if (std::holds_alternative<node::Leaving>(body)) return on_leaving(index);
  if (const auto* state = std::get_if<node::LinkState>(&body)) return on_link_state(index, *state);
  if (const auto* returned = std::get_if<node::Returned>(&body))
    return worker_returned(index_of(index), returned->worker);
  on_stranger(*node.peer, number_, body);
}

void Coordinator::on_stranger(PeerId peer, std::uint64_t job, const node::Body& body) {
  if (const auto* offer = std::get_if<node::Offer>(&body)) return on_offer(peer, *offer);
  if (!std::holds_alternative<node::Ask>(body)) return;
  node::Answer answer;
  answer.version = ask_.version;
  answer.problems = {
      concat("is the program of ", options_.who, ", not a node; give the addresses of nodes")};
  site_.send(peer, job, std::move(answer));
}

void Coordinator::node_gone(std::size_t index, const std::string& reason) {
  Node& node = nodes_[index];
  if (node.step == Step::gone) return;
  const bool expected = node.step == Step::ended || phase_ >= Phase::ending;
  if (!expected) {
    if (node.problem.empty()) node.problem = concat("is gone: ", reason);
    if (phase_ == Phase::running) site_.say(concat("node ", node.name, " is gone: ", reason));
  }
  const bool was_part = node.takes_part();
  if (expected)
    node.step = Step::gone;
  else
    lose(node, Step::gone);
  if (was_part) site_.has_left(index_of(index), "the node is gone");
  lose_standbys(index_of(index));
  std::erase_if(outages_, [&](const auto& outage) {
    return outage.first.first == index_of(index) || outage.first.second == index_of(index);
  });
  resume_cut_off();
}

void Coordinator::on_leaving(std::size_t index) {
  Node& node = nodes_[index];
  if (phase_ != Phase::running || node.step != Step::running) return;
  node.leaves = true;
  site_.say(concat("node ", node.name, " leaves"));
  for (std::uint32_t i = 0; i < launches_.size(); ++i)
    if (placement_.workers[i].value() == index && launches_[i] > 0)
      node.leaving.insert(WorkerId(i));
  for (const WorkerId worker : node.leaving) site_.ask_to_leave(worker);
  move_replicas();
  let_go();
}

// ---- launches ----

void Coordinator::worker_returned(NodeIndex node, WorkerId worker) {
  const std::uint32_t number = worker.value();
  if (phase_ != Phase::running || number >= launches_.size() ||
      placement_.workers[number] != node || cut_off_.contains(worker))
    return;
  launch_again(worker, node);
}

void Coordinator::launch_again(WorkerId worker, NodeIndex node) {
  left_.erase(worker);
  cut_off_.erase(worker);
  placement_.workers[worker.value()] = homes_[worker.value()] = node;
  if (!planted(Mutant::launch_not_counted)) ++launches_[worker.value()];
  const std::uint32_t launch = launches_[worker.value()];
  order_launch(address_of(worker), node, launch);
}

void Coordinator::order_launch(Address actor, NodeIndex node, std::uint32_t launch) {
  if (node == kProgramNode)
    site_.launch(actor, launch);
  else
    send(nodes_[node.value()], node::Launch{actor, launch});
}

}  // namespace leeway
