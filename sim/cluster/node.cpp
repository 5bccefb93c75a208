#include "sim/cluster/node.hpp"

namespace leeway::sim {

SimulatedNode::SimulatedNode(ClusterParts& parts, SimulatedProcess& process,
                             std::vector<Audience*> audience, const Options& options)
    : parts_(parts),
      process_(process),
      presence_(parts.launches.at(process.id())),
      routes_({.number = options.number,
               .self = options.self,
               .names = options.names,
               .send =
                   [this](PeerId peer, Address from, Address to, Message message) {
                     parts_.network.send(peer, from, to, std::move(message));
                   },
               .on_ended = options.on_ended}),
      host_(std::make_unique<Simulator>(host_options(options))) {
  NodeHostOptions node = routes_.host_options(options.placement, parts_.silence);
  node.later = [this](std::function<void()> call) {
    process_.post([call = std::move(call), exists = std::weak_ptr(exists_)] {
      if (!exists.expired()) call();
    });
  };
  node.on_launch = [this, broadcast = node.on_launch](Address actor, std::uint32_t launch) {
    parts_.launches.begin(actor, launch, process_.id(), parts_.timeline.now());
    broadcast(actor, launch);
  };
  host_->advance(parts_.timeline.now());
  node_ = std::make_unique<NodeHost>(parts_.job, std::move(audience), *host_, std::move(node));
  routes_.attach(*node_);
  for (const auto& hosted : node_->hosted()) parts_.launches.start(hosted.actor, process_.id());
}

SimulatedNode::~SimulatedNode() {
  for (const Address actor : host_->addresses())
    if (host_->lives(actor) && presence_->end(actor))
      parts_.observers->ended(parts_.timeline.now(), actor);
}

Simulator::Options SimulatedNode::host_options(const Options& node) {
  const Job& job = *parts_.job;
  World world = parts_.world;
  world.nodes = World::Nodes::one;
  world.detection = world.local_latency;  // actors of one process notice at once
  Simulator::Options options{.seed = mix64(job.plan.seed ^ process_.id()),
                             .world = world,
                             .stragglers = job.stragglers,
                             .first_iterations = job.first_iterations(),
                             .disturbances = job.disturbances};
  options.on_event = [this, observer = node.on_scheduler_event](Address actor, Instant at,
                                                                const Event& event) {
    if (observer && actor == kScheduler) observer(event);
    if (parts_.on_event && presence_->is_present(actor)) parts_.on_event(actor, at, event);
  };
  options.events = this;
  options.clock_began = parts_.timeline.now();
  options.shared_observers = parts_.observers;
  options.presence = presence_;
  options.shared_trace = &parts_.trace;
  return options;
}

void SimulatedNode::start() {
  started_ = true;
  node_->start();
}

}  // namespace leeway::sim
