#include "cluster/job_node.hpp"

#include "transport/this_host.hpp"

namespace leeway {
namespace {

Message without_blobs(const Message& message) {
  const auto header = message.header();
  return Message({header.begin(), header.end()}, {});
}

}  // namespace

JobNode::JobNode(Mesh& mesh, std::shared_ptr<const Job> job, std::vector<Audience*> audience,
                 Options options)
    : mesh_(mesh), job_(std::move(job)), options_(std::move(options)), progress_(*job_) {
  audience.push_back(&progress_);
  LocalNode::Options host;
  host.observers.on_event = [this](Address actor, Instant at, const Event& event) {
    on_event(actor, at, event);
  };
  if (options_.trace_messages)
    host.observers.on_message = [this](const ReceivedMessage& one) { keep(one); };
  else
    host.observers.on_message = options_.on_message;
  host.on_return = options_.on_return;
  host.node.placement = options_.placement;
  host.node.self = options_.self;
  host.node.names = options_.names;
  host.node.silence = options_.silence;
  host.node.send = [this](NodeIndex node, Address from, Address to, Message message) {
    if (const auto peer = peer_of(node)) mesh_.send(*peer, from, to, std::move(message));
  };
  host.node.on_end = [this](Address actor, std::uint32_t life, const EndReason& reason) {
    broadcast(node::Ended{actor, life, reason.text, static_cast<node::Ended::Kind>(reason.kind)});
  };
  host.node.on_life = [this](WorkerId worker, std::uint32_t life) {
    broadcast(node::Moved{worker, options_.self.value(), life});
  };
  host_ = std::make_unique<LocalNode>(job_, std::move(audience), std::move(host));
}

void JobNode::link(NodeIndex node, PeerId peer, const std::string& name) {
  std::lock_guard lock(mutex_);
  links_[node] = {peer};
  auto& names = options_.names;
  if (names.size() <= node.value()) names.resize(node.value() + 1);
  names[node.value()] = name;
  host_->node().add_node(node, name);
}

bool JobNode::is_linked(NodeIndex node) const {
  std::shared_lock lock(mutex_);
  return links_.contains(node);
}

std::optional<PeerId> JobNode::peer_of(NodeIndex node) const {
  std::shared_lock lock(mutex_);
  const auto found = links_.find(node);
  if (found == links_.end() || found->second.gone) return std::nullopt;
  return found->second.peer;
}

std::optional<NodeIndex> JobNode::node_of(PeerId peer) const {
  std::shared_lock lock(mutex_);
  for (const auto& [node, link] : links_)
    if (link.peer == peer) return node;
  return std::nullopt;
}

void JobNode::begin() {
  began_ns_ = steady_ns();
  host_->start();
}

void JobNode::on_message(PeerId peer, Address from, Address to, Message message) {
  if (const auto node = node_of(peer)) host_->node().deliver(*node, from, to, std::move(message));
}

std::optional<NodeIndex> JobNode::mark(PeerId peer, const char* state, bool gone) {
  std::lock_guard lock(mutex_);
  for (auto& [node, link] : links_) {
    if (link.peer != peer || link.gone) continue;
    link.state = state;
    link.gone = gone;
    return node;
  }
  return std::nullopt;
}

void JobNode::on_silent(PeerId peer) {
  if (const auto node = mark(peer, "silent", false)) host_->node().silent(*node);
}
void JobNode::on_heard(PeerId peer) {
  if (const auto node = mark(peer, "up", false)) host_->node().heard(*node);
}
void JobNode::on_gone(PeerId peer, const std::string& reason) {
  if (const auto node = mark(peer, "gone", true)) host_->node().gone(*node, reason);
}

bool JobNode::on_notice(PeerId peer, const NodeEnvelope& envelope) {
  const auto* ended = std::get_if<node::Ended>(&envelope.body);
  const auto* begun = std::get_if<node::Moved>(&envelope.body);
  if ((!ended && !begun) || envelope.job != options_.number) return false;
  const auto sender = node_of(peer);
  if (ended && sender)
    node().ended(ended->actor, ended->life,
                 {static_cast<EndReason::Kind>(ended->kind), ended->reason});
  // A node that has just been called may send this before the link is noted.
  if (begun && (!sender || sender->value() == begun->node))
    moved(begun->worker, NodeIndex(begun->node), begun->life);
  return true;
}

void JobNode::moved(WorkerId worker, NodeIndex node, std::uint32_t life) {
  {
    std::shared_lock lock(mutex_);
    if (worker.value() >= job_->plan.workers || node.value() >= options_.names.size()) return;
  }
  host_->node().moved(worker, node, life);
}

void JobNode::broadcast(const node::Body& body) {
  const Message message = encode(NodeEnvelope{options_.number, body});
  std::shared_lock lock(mutex_);
  for (const auto& [node, link] : links_)
    if (!link.gone) mesh_.send(link.peer, kHost, kHost, message);
}

void JobNode::on_event(Address actor, Instant at, const Event& event) {
  book_.on_event(actor, event);
  if (options_.on_event) options_.on_event(actor, at, event);
  if (!options_.trace) return;
  std::lock_guard lock(trace_mutex_);
  events_.push_back({began_ns_ + at.ns, actor, event});
}

std::vector<node::Events::Emitted> JobNode::take_events() {
  std::lock_guard lock(trace_mutex_);
  return std::exchange(events_, {});
}

void JobNode::keep(const ReceivedMessage& one) {
  // Without the tensors, which would stay in memory.
  std::lock_guard lock(trace_mutex_);
  messages_.push_back(
      {began_ns_ + one.at.ns, one.from, one.to, without_blobs(one.message), one.tensor_bytes});
}

std::vector<node::Messages::Received> JobNode::take_messages() {
  std::lock_guard lock(trace_mutex_);
  return std::exchange(messages_, {});
}

void JobNode::fill(node::Status& status) const {
  status.node = options_.self.value();
  status.job = job_->plan.name;
  if (began_ns_ > 0) status.seconds = static_cast<double>(steady_ns() - began_ns_) * 1e-9;
  status.stages = job_->stages->count();
  book_.fill(status);
  progress_.fill(status);
  std::shared_lock lock(mutex_);
  status.nodes = options_.names;
  if (options_.self == kProgramNode) status.actors = {kScheduler, kMonitor};
  const auto add = [&](Address actor) {
    if (host_->node().node_of(actor) == options_.self) status.actors.push_back(actor);
  };
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i) add(address_of(ShardId(i)));
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) add(address_of(WorkerId(i)));
  for (const auto& [node, link] : links_) {
    node::Status::Link out{node.value(), link.state};
    if (!link.gone) {
      const PeerCounts counts = mesh_.counts(link.peer);
      out.shared_memory = counts.shared_memory;
      out.messages_out = counts.messages_out;
      out.messages_in = counts.messages_in;
      out.bytes_out = counts.bytes_out;
      out.bytes_in = counts.bytes_in;
      out.waiting = counts.waiting;
    }
    status.links.push_back(std::move(out));
  }
}

}  // namespace leeway
