#include "cluster/job_node.hpp"

#include "core/this_host.hpp"
#include "messages/blobs.hpp"

namespace leeway {

JobNode::JobNode(Mesh& mesh, std::shared_ptr<const Job> job, std::vector<Audience*> audience,
                 Options options)
    : mesh_(mesh),
      job_(std::move(job)),
      options_(std::move(options)),
      progress_(*job_),
      routes_({.number = options_.number,
               .self = options_.self,
               .names = options_.names,
               .send = [this](PeerId peer, Address from, Address to,
                              Message message) { mesh_.send(peer, from, to, std::move(message)); },
               .on_ended = options_.on_ended}),
      events_(options_.trace_kept),
      messages_(options_.trace_kept) {
  audience.push_back(&progress_);
  LocalNode::Options host;
  host.observers.on_event = [this](Address actor, Instant at, const Event& event,
                                   std::uint64_t record) { on_event(actor, at, event, record); };
  if (options_.trace_messages)
    host.observers.on_message = [this](const ReceivedMessage& one) { keep(one); };
  else
    host.observers.on_message = options_.on_message;
  host.on_return = [this](Address actor) {
    if (actor.kind == RoleKind::worker) options_.on_return(WorkerId(actor.index));
  };
  host.node = routes_.host_options(options_.placement, options_.silence);
  host_ = std::make_unique<LocalNode>(job_, std::move(audience), std::move(host));
  routes_.attach(host_->node());
}

void JobNode::begin() {
  began_ns_ = steady_ns();
  host_->start();
}

void JobNode::on_event(Address actor, Instant at, const Event& event, std::uint64_t record) {
  book_.on_event(actor, event);
  if (options_.on_event) options_.on_event(actor, at, event, record);
  if (options_.trace) events_.add({began_ns_ + at.ns, actor, event, record});
}

void JobNode::keep(const ReceivedMessage& one) {
  // Without the tensors, which would stay in memory.
  messages_.add(
      {began_ns_ + one.at.ns, one.from, one.to, without_blobs(one.message), one.tensor_bytes});
}

void JobNode::fill(node::Status& status) const {
  status.node = options_.self.value();
  status.job = job_->plan.name;
  if (began_ns_ > 0) status.seconds = static_cast<double>(steady_ns() - began_ns_) * 1e-9;
  status.stages = static_cast<std::uint32_t>(job_->stages->spec().stages);
  book_.fill(status);
  progress_.fill(status);
  status.nodes = routes_.names();
  if (options_.self == kProgramNode) status.actors = {kScheduler, kMonitor};
  const auto add = [&](Address actor) {
    if (host_->node().node_of(actor) == options_.self) status.actors.push_back(actor);
  };
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i) {
    add(shard(i));
    if (job_->plan.replicas == 1 || host_->node().node_of(shard(i)) != options_.self) continue;
    const ReplicaGauge& gauge = (*job_->replica_gauges)[i];
    status.replicas.push_back({ShardId(i),
                               static_cast<node::Status::Replica::Standby>(gauge.standby.load()),
                               gauge.behind});
  }
  for (std::uint32_t i = 0; i < job_->plan.shards; ++i) add(standby(i));
  for (std::uint32_t i = 0; i < job_->plan.workers; ++i) add(worker(i));
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
