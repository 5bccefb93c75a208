#include "actors/cluster/job_routes.hpp"

#include <mutex>

#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

NodeHostOptions JobRoutes::host_options(const Placement& placement, Duration silence) {
  placement_ = placement;
  NodeHostOptions host;
  host.placement = placement;
  host.self = options_.self;
  host.names = options_.names;
  host.silence = silence;
  host.send = [this](NodeIndex node, Address from, Address to, Message message) {
    if (const auto peer = peer_of(node)) options_.send(*peer, from, to, std::move(message));
  };
  host.on_end = [this](Address actor, std::uint32_t launch, const EndReason& reason) {
    broadcast(node::Ended{actor, launch, reason.text, static_cast<node::Ended::Kind>(reason.kind)});
    if (options_.on_ended) options_.on_ended(actor, launch);
  };
  host.on_launch = [this](Address actor, std::uint32_t launch) {
    if (planted(Mutant::launch_not_announced)) return;
    broadcast(node::Moved{actor, options_.self.value(), launch});
  };
  return host;
}

void JobRoutes::link(NodeIndex node, PeerId peer, const std::string& name) {
  // If the process behind a connection has joined again, only its latest number is valid.
  if (const auto before = node_of(peer); before && *before != node)
    host_->gone(*before, concat("it has joined again as node ", node));
  std::lock_guard lock(mutex_);
  std::erase_if(links_, [&](const auto& entry) { return entry.second.peer == peer; });
  links_[node] = {peer};
  auto& names = options_.names;
  if (names.size() <= node.value()) names.resize(node.value() + 1);
  names[node.value()] = name;
  host_->add_node(node, name);
}

void JobRoutes::unlink(NodeIndex node, const std::string& reason) {
  if (const auto peer = peer_of(node)) on_gone(*peer, reason);
}

std::optional<PeerId> JobRoutes::peer_of(NodeIndex node) const {
  std::shared_lock lock(mutex_);
  const auto found = links_.find(node);
  if (found == links_.end() || found->second.gone) return std::nullopt;
  return found->second.peer;
}

std::optional<NodeIndex> JobRoutes::node_of(PeerId peer) const {
  std::shared_lock lock(mutex_);
  for (const auto& [node, link] : links_)
    if (link.peer == peer) return node;
  return std::nullopt;
}

void JobRoutes::on_message(PeerId peer, Address from, Address to, Message message) {
  if (const auto node = node_of(peer)) host_->deliver(*node, from, to, std::move(message));
}

std::optional<NodeIndex> JobRoutes::mark(PeerId peer, const char* state, bool gone) {
  std::lock_guard lock(mutex_);
  for (auto& [node, link] : links_) {
    if (link.peer != peer || link.gone) continue;
    link.state = state;
    link.gone = gone;
    return node;
  }
  return std::nullopt;
}

void JobRoutes::on_silent(PeerId peer) {
  if (const auto node = mark(peer, "silent", false)) host_->silent(*node);
}
void JobRoutes::on_heard(PeerId peer) {
  if (const auto node = mark(peer, "up", false)) host_->heard(*node);
}
void JobRoutes::on_gone(PeerId peer, const std::string& reason) {
  if (const auto node = mark(peer, "gone", true)) host_->gone(*node, reason);
}

bool JobRoutes::on_notice(PeerId peer, const NodeEnvelope& envelope) {
  const auto* ended = std::get_if<node::Ended>(&envelope.body);
  const auto* begun = std::get_if<node::Moved>(&envelope.body);
  if ((!ended && !begun) || envelope.job != options_.number) return false;
  const auto sender = node_of(peer);
  if (ended && sender) {
    host_->ended(ended->actor, ended->launch,
                 {static_cast<EndReason::Kind>(ended->kind), ended->reason});
    if (options_.on_ended) options_.on_ended(ended->actor, ended->launch);
  }
  // A node that has just been called may send this before the link is noted.
  if (begun && (!sender || sender->value() == begun->node))
    moved(begun->actor, NodeIndex(begun->node), begun->launch);
  return true;
}

void JobRoutes::moved(Address actor, NodeIndex node, std::uint32_t launch) {
  {
    std::shared_lock lock(mutex_);
    const bool may_move =
        placement_.find(actor) && (actor.kind != RoleKind::shard || !placement_.standbys.empty());
    if (!may_move || node.value() >= options_.names.size()) return;
  }
  host_->moved(actor, node, launch);
}

void JobRoutes::broadcast(const node::Body& body) {
  const Message message = encode(NodeEnvelope{options_.number, body});
  std::shared_lock lock(mutex_);
  for (const auto& [node, link] : links_)
    if (!link.gone) options_.send(link.peer, kHost, kHost, message);
}

std::vector<std::string> JobRoutes::names() const {
  std::shared_lock lock(mutex_);
  return options_.names;
}

std::map<NodeIndex, JobRoutes::Link> JobRoutes::links() const {
  std::shared_lock lock(mutex_);
  return links_;
}

}  // namespace leeway
