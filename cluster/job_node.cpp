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
    : mesh_(mesh),
      job_(std::move(job)),
      options_(std::move(options)),
      progress_(*job_),
      routes_({.number = options_.number,
               .self = options_.self,
               .names = options_.names,
               .send = [this](PeerId peer, Address from, Address to, Message message) {
                 mesh_.send(peer, from, to, std::move(message));
               }}) {
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
  host.node = routes_.host_options(options_.placement, options_.silence);
  host_ = std::make_unique<LocalNode>(job_, std::move(audience), std::move(host));
  routes_.attach(host_->node());
}

void JobNode::begin() {
  began_ns_ = steady_ns();
  host_->start();
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
  status.nodes = routes_.names();
  if (options_.self == kProgramNode) status.actors = {kScheduler, kMonitor};
  const auto add = [&](Address actor) {
    if (host_->node().node_of(actor) == options_.self) status.actors.push_back(actor);
  };
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i) add(address_of(ShardId(i)));
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) add(address_of(WorkerId(i)));
  for (const auto& [node, link] : routes_.links()) {
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
