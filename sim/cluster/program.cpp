#include "sim/cluster/program.hpp"

#include "actors/cluster/data_mark.hpp"
#include "messages/envelope.hpp"
#include "sim/chance.hpp"
#include "sim/cluster/node.hpp"

namespace leeway::sim {
namespace {

/// Pieces of each data set. They are few, so that most of a simulated run is training.
constexpr std::int64_t kPieces = 20;

CoordinatorOptions options_of(const ClusterParts& parts, const std::string& name,
                              const Placement& placement, std::vector<std::string> nodes) {
  nodes.insert(nodes.begin(), name);
  const CoordinatorOptions real;
  return {.placement = placement,
          .names = std::move(nodes),
          .who = "the program",
          .measure_clocks = parts.job->plan.seed % 2 == 0,
          .answer_limit = parts.limit(real.answer_limit.seconds()),
          .hurry = parts.limit(real.hurry.seconds()),
          .end_limit = parts.limit(real.end_limit.seconds()),
          .silent_end_limit = parts.limit(real.silent_end_limit.seconds()),
          .silence = parts.silence,
          .patience = parts.limit(real.patience.seconds()),
          .call_again = parts.limit(real.call_again.seconds()),
          .call_again_most = parts.limit(real.call_again_most.seconds()),
          .relink_every = parts.limit(real.relink_every.seconds()),
          .standby_again = parts.limit(real.standby_again.seconds()),
          .at_least = parts.job->plan.simulated->at_least};
}

}  // namespace

SimulatedProgram::SimulatedProgram(ClusterParts& parts, std::string name,
                                   const Placement& placement, std::vector<std::string> nodes,
                                   std::vector<Audience*> audience, bool competes)
    : SimulatedProcess(parts, name),
      coordinator_(options_of(parts, name, placement, std::move(nodes)), parts.random.next() | 1,
                   *this),
      audience_(std::move(audience)),
      competes_(competes) {
  node::Ask ask;
  ask.version = "simulated";
  ask.who = "the program";
  ask.data = mark_of(parts.job->data, 0);
  coordinator_.prepare(parts.job->stages, parts.job->faults, std::move(ask));
  start_ticking();
  post([this] { proceed(); });
}

SimulatedProgram::~SimulatedProgram() = default;

void SimulatedProgram::proceed() {
  if (competes_) return;
  if (coordinator_.phase() == Coordinator::Phase::ready) {
    set_part(std::make_unique<SimulatedNode>(
        parts_, *this, audience_,
        SimulatedNode::Options{.number = coordinator_.number(),
                               .placement = coordinator_.placement(),
                               .self = kProgramNode,
                               .names = coordinator_.names(),
                               .on_ended =
                                   [this](Address actor, std::uint32_t launch) {
                                     post([this, actor, launch] {
                                       coordinator_.ended(actor, launch);
                                     });
                                   },
                               .on_scheduler_event =
                                   [this](const Event& event) {
                                     if (Coordinator::concerns(event))
                                       post([this, event] { coordinator_.on_event(event); });
                                   }}));
    coordinator_.start(parts_.job->clips_rounds());
  }
  if (coordinator_.phase() == Coordinator::Phase::ended) exit();
}

void SimulatedProgram::finish() {
  enter([this] {
    if (coordinator_.phase() != Coordinator::Phase::running) return;
    coordinator_.finish();
    proceed();
  });
}

void SimulatedProgram::give_up() {
  enter([this] {
    coordinator_.abandon("it was given up");
    exit();
  });
}

void SimulatedProgram::return_worker(WorkerId worker) {
  enter([this, worker] { coordinator_.returned(worker); });
}

void SimulatedProgram::tick() {
  coordinator_.tick();
  proceed();
}

void SimulatedProgram::received(PeerId peer, std::uint64_t job, node::Body& body) {
  // Counted by the cluster, which sees all actors.
  if (std::holds_alternative<node::Effects>(body)) return;
  coordinator_.received(peer, job, body);
  proceed();
}

void SimulatedProgram::gone(PeerId peer, const std::string& reason) {
  coordinator_.gone(peer, reason);
  proceed();
}

void SimulatedProgram::send(Address to, Message message) {
  enter([this, to, message] {
    if (part()) part()->host().send(to, message);
  });
}

// ---- Coordinator::Site ----

void SimulatedProgram::call(NodeIndex index, const std::string& name) {
  SimulatedProcess::call(name, [this, index](const Expected<PeerId>& peer) {
    coordinator_.called(index, peer);
    proceed();
  });
}

node::DataPiece SimulatedProgram::piece(const node::DataMark& mark, std::int64_t first) {
  node::DataPiece piece;
  piece.test = first >= mark.train_samples;
  const std::int64_t end = piece.test ? mark.train_samples + mark.test_samples : mark.train_samples;
  piece.first = piece.test ? first - mark.train_samples : first;
  piece.samples = static_cast<std::uint32_t>(std::min(end / kPieces + 1, end - first));
  // The agents of the simulation share the data, so that only their number counts.
  piece.x = Blob::floats(1);
  piece.y = Blob::floats(1);
  return piece;
}

void SimulatedProgram::link(NodeIndex index, PeerId peer, const std::string& name) {
  part()->routes().link(index, peer, name);
}

void SimulatedProgram::unlink(NodeIndex index, const std::string& reason) {
  part()->routes().unlink(index, reason);
}

void SimulatedProgram::begin() {
  part()->start();
  parts_.on_begin();
}

void SimulatedProgram::launch(Address actor, std::uint32_t launch) {
  part()->node().launch(actor, launch);
}

void SimulatedProgram::end_launch(Address actor, std::uint32_t launch, const std::string& reason) {
  part()->node().end_launch(actor, launch, {EndReason::Kind::unreachable, reason});
}

void SimulatedProgram::ask_to_leave(WorkerId worker) {
  part()->host().send(kScheduler, encode(Envelope{.body = msg::Leave{worker}}));
}

void SimulatedProgram::report_lost(Address actor, const std::string& reason) {
  part()->host().report_down(kScheduler, actor, {EndReason::Kind::cut_off, reason});
}

}  // namespace leeway::sim
