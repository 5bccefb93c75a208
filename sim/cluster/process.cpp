#include "sim/cluster/process.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/text.hpp"
#include "sim/chance.hpp"
#include "sim/cluster/node.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint64_t kClusterStream = 0x636c7573;
/// In a real cluster.
constexpr double kCallLimitSeconds = 5, kSilenceSeconds = 2;
/// At most this, and a fraction of the silence limit.
constexpr Duration kTick = milliseconds(50);

World world_of(const Job& job) {
  return job.plan.simulated ? World(*job.plan.simulated) : World();
}

/// The time in which all workers pull and push once, over one link.
Duration tensors_time(const Job& job, const World& world) {
  if (world.link_bytes_per_second <= 0) return {};
  double bytes = 0;
  for (const Block& block : job.layout->blocks())
    bytes += static_cast<double>(block.floats) * sizeof(float);
  return time_of(2 * bytes * job.plan.workers, world.link_bytes_per_second);
}

}  // namespace

ClusterParts::ClusterParts(std::shared_ptr<const Job> of,
                           std::vector<std::shared_ptr<Observer>> watching,
                           const Trace::Options& tracing)
    : job(std::move(of)),
      world(world_of(*job)),
      silence(world.detection),
      tensors(tensors_time(*job, world)),
      network(timeline, world, job->plan.seed, silence),
      observers(std::make_shared<Observers>(std::move(watching))),
      launches(observers),
      trace(tracing),
      random(Rng::stream(job->plan.seed, kClusterStream)) {}

Duration ClusterParts::limit(double seconds) const {
  // The shortest silence limit with which messages and tensors are as quick as in a real cluster.
  constexpr double kMessages = 40, kIterations = 0.5;
  const Duration least =
      std::max({silence, scaled(world.latency, kMessages), scaled(tensors, kIterations)});
  return scaled(least, seconds / kSilenceSeconds);
}

SimulatedProcess::SimulatedProcess(ClusterParts& parts, std::string name)
    : parts_(parts), id_(parts.network.add(std::move(name), *this)) {}

SimulatedProcess::~SimulatedProcess() = default;

void SimulatedProcess::enter(const std::function<void()>& call) {
  if (ended_) return;
  if (is_frozen()) return waiting_.push_back(call);
  call();
}

void SimulatedProcess::post(std::function<void()> call) {
  constexpr double kMostLatencies = 20;
  const Instant now = parts_.timeline.now();
  const Duration late = parts_.random.one_in(8)
                            ? scaled(parts_.world.latency, kMostLatencies * parts_.random.uniform())
                            : Duration{};
  queued_until_ = std::max(queued_until_, now + late);
  parts_.timeline.at(queued_until_, [this, call = std::move(call)] { enter(call); });
}

void SimulatedProcess::start_ticking() {
  const Duration period = std::min(kTick, Duration{parts_.silence.ns / 4 + 1});
  parts_.timeline.after(period, [this] {
    if (ended_) return;
    // A frozen process makes up for one tick only.
    enter([this] {
      tick();
      start_ticking();
    });
  });
}

void SimulatedProcess::send(PeerId peer, std::uint64_t job, node::Body body) {
  parts_.network.send(peer, kHost, kHost, encode(NodeEnvelope{job, std::move(body)}));
}

void SimulatedProcess::call(const std::string& name,
                            std::function<void(const Expected<PeerId>&)> then) {
  parts_.network.connect(id_, name, parts_.limit(kCallLimitSeconds),
                         [this, then = std::move(then)](const Expected<PeerId>& peer) {
                           if (!ended_) post([then, peer] { then(peer); });
                         });
}

void SimulatedProcess::set_part(std::unique_ptr<SimulatedNode> part) {
  part_ = std::move(part);
}

// ---- inputs ----

void SimulatedProcess::on_message(PeerId peer, Address from, Address to, Message message) {
  if (to.kind != RoleKind::host)
    return enter([=, this] {
      if (part_) part_->routes().on_message(peer, from, to, message);
    });
  auto decoded = decode_node(message);
  LW_CHECK(bool(decoded), decoded ? std::string() : decoded.error().text);
  const auto envelope = std::make_shared<NodeEnvelope>(std::move(*decoded));
  enter([this, peer, envelope] {
    if (part_ && part_->routes().on_notice(peer, *envelope)) return;
    post([this, peer, envelope] { received(peer, envelope->job, envelope->body); });
  });
}

void SimulatedProcess::on_silent(PeerId peer) {
  enter([this, peer] {
    if (part_) part_->routes().on_silent(peer);
    post([this, peer] { silent(peer); });
  });
}

void SimulatedProcess::on_heard(PeerId peer) {
  enter([this, peer] {
    if (part_) part_->routes().on_heard(peer);
    post([this, peer] { heard(peer); });
  });
}

void SimulatedProcess::on_gone(PeerId peer, const std::string& reason) {
  enter([this, peer, reason] {
    if (part_) part_->routes().on_gone(peer, reason);
    post([this, peer, reason] { gone(peer, reason); });
  });
}

// ---- faults ----

void SimulatedProcess::end(bool killed) {
  if (std::exchange(ended_, true)) return;
  part_.reset();
  waiting_.clear();
  parts_.network.end(id_, killed);
}

void SimulatedProcess::freeze() {
  if (ended_) return;
  ++freezes_;
  parts_.network.freeze(id_);
}

void SimulatedProcess::thaw() {
  if (ended_) return;
  LW_CHECK(freezes_ > 0, name());
  parts_.network.thaw(id_);
  if (--freezes_ > 0) return;
  for (const auto& call : std::exchange(waiting_, {})) enter(call);
}

}  // namespace leeway::sim
