#include "sim/cluster/agent.hpp"

#include "core/check.hpp"
#include "core/text.hpp"
#include "sim/chance.hpp"
#include "sim/cluster/node.hpp"
#include "sim/cluster/program.hpp"

namespace leeway::sim {
namespace {

AgentOptions options_of(const ClusterParts& parts, const std::string& join) {
  AgentOptions options;
  options.join = join;
  for (Duration* const limit : {&options.join_wait, &options.program_silence, &options.leave_limit,
                                &options.offer_limit, &options.join_again, &options.report_loading})
    *limit = parts.limit(limit->seconds());
  return options;
}

}  // namespace

SimulatedAgent::SimulatedAgent(ClusterParts& parts, std::string name, const std::string& join)
    : SimulatedProcess(parts, std::move(name)),
      agent_(options_of(parts, join), *this),
      join_(join) {
  start_ticking();
  if (!join_.empty()) call_program();
}

SimulatedAgent::~SimulatedAgent() = default;

void SimulatedAgent::leave() {
  enter([this] { agent_.leave(); });
}

void SimulatedAgent::return_worker(WorkerId worker) {
  enter([this, worker] { agent_.returned(worker); });
}

void SimulatedAgent::tick() {
  agent_.tick();
  if (!agent_.finished()) return;
  agent_.close();
  exit();
}

void SimulatedAgent::received(PeerId peer, std::uint64_t job, node::Body& body) {
  agent_.received(peer, job, body);
}

void SimulatedAgent::later(Duration time, const std::function<void()>& call) {
  parts_.timeline.after(time, [this, call, job = std::weak_ptr(reserved_)] {
    enter([call, job] {
      if (!job.expired()) call();
    });
  });
}

void SimulatedAgent::require(bool allowed, const char* what) const {
  if (!allowed)
    throw Violation("each order is carried out once, in its state", {},
                    concat("node ", SimulatedProcess::name(), ' ', what));
}

// ---- Agent::Site ----

void SimulatedAgent::call(NodeIndex node, const std::string& name) {
  SimulatedProcess::call(
      name, [this, node, job = std::weak_ptr(reserved_)](const Expected<PeerId>& peer) {
        if (!job.expired()) agent_.called(node, peer);
      });
}

void SimulatedAgent::call_program() {
  SimulatedProcess::call(join_,
                         [this](const Expected<PeerId>& peer) { agent_.called_program(peer); });
}

bool SimulatedAgent::reserve(PeerId program, std::uint64_t job, const node::Ask& ask,
                             node::Answer& answer) {
  require(!reserved_ && !part(), "takes a second job");
  reserved_at_.push_back(parts_.timeline.now());
  answer.version = ask.version;
  answer.cores = parts_.world.cores;
  reserved_ = std::make_shared<Reserved>(Reserved{program, job, ask});
  return true;
}

void SimulatedAgent::load_data() {
  // May take longer than a program waits for an answer.
  constexpr double kLongest = 60;
  const Duration most =
      parts_.random.one_in(4) ? parts_.limit(kLongest) : scaled(parts_.world.latency, 20);
  const Duration takes = scaled(most, parts_.random.uniform());
  const bool has_data = !parts_.random.one_in(3);
  later(takes, [this, has_data] {
    reserved_->loaded_at = parts_.timeline.now();
    agent_.loaded(has_data);
  });
}

Expected<std::int64_t> SimulatedAgent::store(const node::DataPiece& piece, bool& complete) {
  const auto& data = reserved_->ask.data;
  const std::int64_t first = piece.first + (piece.test ? data.train_samples : 0);
  require(first == reserved_->samples, "gets data twice, or not in order");
  reserved_->samples += piece.samples;
  complete = reserved_->samples == data.train_samples + data.test_samples;
  return reserved_->samples;
}

void SimulatedAgent::make_actors() {
  require(!part(), "makes its actors twice");
  const Duration takes = scaled(parts_.world.latency, 20 * parts_.random.uniform());
  later(takes, [this] {
    set_part(std::make_unique<SimulatedNode>(
        parts_, *this, std::vector<Audience*>{},
        SimulatedNode::Options{.number = reserved_->number,
                               .placement = placement_of(reserved_->ask),
                               .self = NodeIndex(reserved_->ask.self),
                               .names = reserved_->ask.nodes}));
    agent_.made({});
  });
}

void SimulatedAgent::link(NodeIndex index, PeerId peer, const std::string& name) {
  part()->routes().link(index, peer, name);
}

void SimulatedAgent::begin() {
  require(part() && !part()->has_started(), "begins twice");
  part()->start();
}

void SimulatedAgent::launch(Address actor, std::uint32_t launch) {
  part()->node().launch(actor, launch);
}

void SimulatedAgent::end_launch(Address actor, std::uint32_t launch, const std::string& reason) {
  part()->node().end_launch(actor, launch, {EndReason::Kind::unreachable, reason});
}

void SimulatedAgent::moved(Address actor, NodeIndex index, std::uint32_t launch) {
  part()->routes().moved(actor, index, launch);
}

std::vector<NodeHost::HostedActor> SimulatedAgent::hosted() const {
  return part()->node().hosted();
}

bool SimulatedAgent::has_replica() const {
  return !part()->node().replicas().empty();
}

void SimulatedAgent::end_job(const std::string&) {
  require(bool(reserved_), "ends a job twice");
  set_part(nullptr);
  reserved_.reset();
}

}  // namespace leeway::sim
