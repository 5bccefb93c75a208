#include "sim/cluster/faults.hpp"

#include <algorithm>

#include "messages/envelope.hpp"
#include "plan/fault_queries.hpp"
#include "sim/cluster/node.hpp"

namespace leeway::sim {

ClusterFaults::ClusterFaults(const std::vector<plan::Fault>& faults, ClusterView& cluster)
    : cluster_(cluster) {
  for (std::size_t number = 0; number < faults.size(); ++number)
    if (!std::holds_alternative<plan::Throws>(faults[number].kind) &&
        !std::holds_alternative<plan::Killed>(faults[number].kind))
      faults_.push_back({number, faults[number]});
}

bool ClusterFaults::wait_for_iterations() const {
  return std::ranges::any_of(faults_, [](const Waiting& waiting) {
    return std::holds_alternative<std::int64_t>(waiting.spec.at);
  });
}

bool ClusterFaults::has_killed_program() const {
  return std::ranges::any_of(faults_, [](const Waiting& waiting) {
    return waiting.begun && waiting.spec.actor == Address{RoleKind::node, 0} &&
           std::holds_alternative<plan::Crash>(waiting.spec.kind);
  });
}

bool ClusterFaults::has_disturbed(std::uint32_t node) const {
  const auto is_near = [node](Address actor) {
    return actor == Address{RoleKind::node, node} || actor == Address{RoleKind::node, 0};
  };
  return std::ranges::any_of(faults_, [&](const Waiting& waiting) {
    const plan::FaultKind& kind = waiting.spec.kind;
    const auto* breaks = std::get_if<plan::Breaks>(&kind);
    const auto* silence = std::get_if<plan::Silence>(&kind);
    return waiting.begun &&
           (is_near(waiting.spec.actor) || (breaks && is_near(breaks->peer)) ||
            (silence && is_near(silence->peer)) || std::holds_alternative<plan::Partition>(kind) ||
            std::holds_alternative<plan::Competes>(kind));
  });
}

void ClusterFaults::after(double seconds, std::function<void()> call) {
  ++pending_;
  cluster_.parts().timeline.after(time_of(seconds, 1), [this, call = std::move(call)] {
    call();
    --pending_;
    last_change_ = cluster_.parts().timeline.now();
  });
}

void ClusterFaults::arm() {
  for (Waiting& waiting : faults_)
    if (const auto* seconds = std::get_if<double>(&waiting.spec.at))
      after(*seconds, [this, &waiting] { begin(waiting); });
}

void ClusterFaults::inject(plan::Fault fault) {
  faults_.push_back({std::nullopt, std::move(fault)});
  after(0, [this, &injected = faults_.back()] { begin(injected); });
}

void ClusterFaults::on_event(Instant, Address actor, const Event& event) {
  const auto* started = event.as<event::StepStarted>();
  if (!started) return;
  for (Waiting& waiting : faults_) {
    const auto* iteration = std::get_if<std::int64_t>(&waiting.spec.at);
    if (!iteration || waiting.begun || started->iteration.value() < *iteration) continue;
    if (waiting.spec.actor.kind == RoleKind::worker && waiting.spec.actor != actor) continue;
    waiting.begun = true;
    after(0, [this, &waiting] { begin(waiting); });
  }
}

// ---- the faults ----

SimulatedProcess* ClusterFaults::process_of(Address actor) {
  if (actor.kind == RoleKind::node)
    return actor.index == 0 ? static_cast<SimulatedProcess*>(&cluster_.program())
                            : cluster_.agent(actor.index);
  for (const std::uint32_t node : cluster_.nodes()) {
    SimulatedProcess* const process = process_of({RoleKind::node, node});
    if (process && process->part() && process->part()->host().lives(actor)) return process;
  }
  return nullptr;
}

void ClusterFaults::return_worker(Address worker) {
  // The node that has the worker asks the coordinator to launch it again.
  for (const std::uint32_t node : cluster_.nodes()) {
    SimulatedProcess* const process = process_of({RoleKind::node, node});
    if (!process || !process->part()) continue;
    NodeHost& host = process->part()->node();
    if (host.node_of(worker) != process->part()->routes().self() ||
        process->part()->host().lives(worker))
      continue;
    if (node == 0) return cluster_.program().return_worker(WorkerId(worker.index));
    return cluster_.agent(node)->return_worker(WorkerId(worker.index));
  }
}

void ClusterFaults::between(SimulatedProcess* a, SimulatedProcess* b, double seconds,
                            void (ProcessNetwork::*on)(ProcessId, ProcessId),
                            void (ProcessNetwork::*off)(ProcessId, ProcessId)) {
  if (!a || !b || a == b) return;
  ProcessNetwork& network = cluster_.parts().network;
  (network.*on)(a->id(), b->id());
  after(seconds, [&network, off, from = a->id(), to = b->id()] { (network.*off)(from, to); });
}

struct ClusterFaults::Begin {
  ClusterFaults& faults;
  ClusterView& cluster;
  const Address actor;
  SimulatedProcess* const process;  // null: the fault changes nothing
  bool is_node() const { return actor.kind == RoleKind::node; }
  SimulatedProcess* other(Address peer) const { return faults.process_of(peer); }

  void operator()(const plan::Throws&) const {}
  void operator()(const plan::Killed&) const {}
  void operator()(const plan::Crash& in) const {
    if (!process) return;
    if (is_node()) {
      process->kill();
      if (in.back > 0)
        faults.after(in.back, [&to = cluster, node = actor.index] {
          to.start_again(node, to.parts().random.one_in(2));
        });
      return;
    }
    process->part()->host().kill(actor, plan::reason_of(in));
    // The coordinator starts standbys by itself.
    if (in.back > 0 && actor.kind == RoleKind::worker)
      faults.after(in.back, [&to = faults, a = actor] { to.return_worker(a); });
  }
  void operator()(const plan::Joins&) const {
    if (is_node())
      cluster.start_again(actor.index, true);
    else
      faults.return_worker(actor);
  }
  void operator()(const plan::Leaves&) const {
    if (!process) return;
    if (is_node())
      cluster.agent(actor.index)->leave();
    else
      process->part()->host().send(kScheduler, encode({.body = msg::Leave{WorkerId(actor.index)}}));
  }
  void operator()(const plan::Freeze& in) const {
    if (!process) return;
    if (is_node()) {
      process->freeze();
      return faults.after(in.seconds, [at = process] { at->thaw(); });
    }
    Simulator& host = process->part()->host();
    host.freeze(actor);
    host.at(host.now() + time_of(in.seconds, 1), [&host, a = actor] { host.thaw(a); });
  }
  void operator()(const plan::Breaks& in) const {
    faults.between(process, other(in.peer), in.seconds, &ProcessNetwork::cut,
                   &ProcessNetwork::mend);
  }
  void operator()(const plan::Silence& in) const {
    faults.between(process, other(in.peer), in.seconds, &ProcessNetwork::block,
                   &ProcessNetwork::unblock);
  }
  void operator()(const plan::Partition& in) const {
    for (const std::uint32_t node : cluster.nodes()) {
      const Address peer{RoleKind::node, node};
      if (peer == actor || std::ranges::find(in.with, peer) != in.with.end()) continue;
      faults.between(process, other(peer), in.seconds, &ProcessNetwork::block,
                     &ProcessNetwork::unblock);
      faults.between(other(peer), process, in.seconds, &ProcessNetwork::block,
                     &ProcessNetwork::unblock);
    }
  }
  void operator()(const plan::SlowLink& in) const {
    if (!process) return;
    ProcessNetwork& network = cluster.parts().network;
    network.slow(process->id(), in.factor);
    faults.after(in.seconds, [&network, id = process->id(), factor = in.factor] {
      network.restore(id, factor);
    });
  }
  void operator()(const plan::Competes& in) const {
    SimulatedProgram& other = cluster.start_competitor(actor.index);
    faults.after(in.seconds, [&other, &random = cluster.parts().random] {
      random.one_in(2) ? other.give_up() : other.kill();
    });
  }
  // Refused by validate().
  void operator()(const plan::Slow&) const {}
  void operator()(const plan::Delay&) const {}
  void operator()(const plan::ClockStops&) const {}
};

void ClusterFaults::begin(Waiting& waiting) {
  waiting.begun = true;
  const Address actor = waiting.spec.actor;
  SimulatedProcess* process = process_of(actor);
  if (process && (process->has_ended() || (process->is_frozen() && actor.kind != RoleKind::node)))
    process = nullptr;
  const bool joins = std::holds_alternative<plan::Joins>(waiting.spec.kind) ||
                     std::holds_alternative<plan::Competes>(waiting.spec.kind);
  // A fault of an actor that has ended, or that has joined before, changes nothing.
  if (waiting.number && cluster_.parts().job->disturbances && (process != nullptr) != joins)
    cluster_.parts().job->disturbances->fired(*waiting.number);
  std::visit(Begin{*this, cluster_, actor, process}, waiting.spec.kind);
}

}  // namespace leeway::sim
