#include "sim/search/node_loss_trial.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "core/text.hpp"
#include "plan/groups.hpp"
#include "sim/cluster/node.hpp"
#include "sim/cluster/simulation.hpp"
#include "sim/search/dice.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint64_t kNodeLossStream = 0x6e6c6f73;

/// Disturbs one node after the other, each when all standbys are in sync. Nodes also leave while a
/// shard waits for its standby.
class NodeLosses {
 public:
  explicit NodeLosses(const std::shared_ptr<const Job>& job)
      : silence_(static_cast<double>(World(*job->plan.simulated).detection.ns) * 1e-9),
        rng_(Rng::stream(job->plan.seed, kNodeLossStream)) {
    SimulationOptions options;
    options.on_event = [this](Address, Instant, const Event& event) { observe(event); };
    simulation_ =
        std::make_unique<ClusterSimulation>(job, std::vector<Audience*>{}, std::move(options));
  }

  Trial run() {
    Trial trial = watch(*simulation_);
    trial.losses = losses_;
    return trial;
  }

 private:
  void observe(const Event& event) {
    if (const auto* lost = event.as<event::PrimaryLost>()) {
      lacking_.insert(lost->shard);
      unnoticed_.erase(address_of(lost->shard));
    }
    if (const auto* lost = event.as<event::StandbyLost>()) {
      lacking_.insert(lost->shard);
      unnoticed_.erase(standby_of(lost->shard));
    }
    if (const auto* seeded = event.as<event::StandbyInSync>()) lacking_.erase(seeded->shard);
    if (!std::exchange(has_begun_, true)) look_later();
  }
  /// In virtual time, as a multiple of the silence limit.
  double some(double most) { return uniform(rng_, 0, most) * silence_; }
  void look_later() {
    simulation_->after(time_of(some(2), 1), [this] {
      look();
      if (!simulation_->ended()) look_later();
    });
  }
  /// The loss of a standby just while its primary ends loses the shard.
  bool is_any_leaving() const {
    for (std::uint32_t node = 1; node <= simulation_->last_node(); ++node)
      if (!simulation_->node(node).has_ended() && simulation_->node(node).role().is_leaving())
        return true;
    return false;
  }
  /// A primary that ends while the loss of its standby is not noticed yet loses the shard: two
  /// replicas at once (docs/recovery.md).
  static bool has_primary(SimulatedNode& part) {
    return std::ranges::any_of(part.node().replicas(),
                               [](Address actor) { return actor.kind == RoleKind::shard; });
  }
  void look() {
    const Instant now = simulation_->now();
    const bool may_be_lost =
        now >= quiet_until_ && lacking_.empty() && unnoticed_.empty() && !is_any_leaving();
    if (may_be_lost ? rng_.one_in(3) : !rng_.one_in(4)) return;
    const std::uint32_t node = between(rng_, 1, simulation_->last_node());
    const SimulatedAgent& process = simulation_->node(node);
    if (process.has_ended() || process.is_frozen() || !process.part() ||
        !process.part()->has_started() || process.role().is_leaving())
      return;
    const bool is_pending = now < quiet_until_ || !unnoticed_.empty();
    if (is_pending && has_primary(*process.part())) return;
    ++losses_;
    if (!may_be_lost) return leave(node);
    const double lasts = some(rng_.one_in(2) ? 1 : 8);
    if (rng_.one_in(8)) {
      leave(node);
    } else {
      const plan::Fault fault = fault_of(node, lasts);
      if (std::holds_alternative<plan::Crash>(fault.kind))
        for (const Address actor : process.part()->node().replicas()) unnoticed_.insert(actor);
      simulation_->inject(fault);
    }
    // A silence must be noticed before the next loss. Its messages under way hide a crash longer.
    quiet_until_ = now + time_of(lasts + 5 * silence_, 1);
  }
  void leave(std::uint32_t number) {
    const Address node{RoleKind::node, number};
    simulation_->inject({node, 0.0, 0, plan::Leaves{}});
    join_when_left(number);
  }
  void join_when_left(std::uint32_t number) {
    simulation_->after(time_of(20 * silence_, 1), [this, number] {
      if (simulation_->ended()) return;
      if (!simulation_->node(number).has_ended()) return join_when_left(number);
      simulation_->inject({Address{RoleKind::node, number}, 0.0, 0, plan::Joins{}});
    });
  }
  plan::Fault fault_of(std::uint32_t number, double lasts) {
    const Address node{RoleKind::node, number};
    plan::Fault fault{node, 0.0, 0, plan::Crash{lasts}};
    const std::uint32_t last = simulation_->last_node();
    const std::uint32_t other = (number + between(rng_, 1, last)) % (last + 1);
    const Address peer{RoleKind::node, other};
    switch (rng_.below(7)) {
      case 0:
      case 1:
        fault.kind = plan::Freeze{lasts};
        break;
      case 2:
        fault.kind = plan::Breaks{peer, lasts};
        break;
      case 3:
        fault.kind = plan::Silence{peer, lasts};
        break;
      default:
        break;
    }
    return fault;
  }

  const double silence_;  // limit, in seconds
  Rng rng_;
  std::set<ShardId> lacking_;    // shards without a standby in sync
  std::set<Address> unnoticed_;  // replicas whose process has crashed
  bool has_begun_ = false;
  Instant quiet_until_;
  std::uint64_t losses_ = 0;
  std::unique_ptr<ClusterSimulation> simulation_;
};

}  // namespace

Trial try_node_losses(Plan plan, const MakeJob& make) {
  plan.replicas = 2;
  plan::World& world = *plan.simulated;
  world.agents = std::max(world.agents, 3u);
  world.at_least = 0;
  world.faults_from = plan::World::FaultsFrom::start;
  // One member is with the program, so that the run can always go on.
  world.place.clear();
  const std::uint32_t first = workers_per_member(plan);
  for (std::uint32_t stage = 0; stage < first; ++stage)
    world.place += concat(stage > 0 ? "," : "", spelled(worker(stage)), "=0");
  // Sometimes the program has replicas, too.
  if (plan.seed % 5 == 0) world.place += ",shards=0";
  if (plan.seed % 5 == 1) world.place += ",standbys=0";
  std::erase_if(plan.faults, [&](const plan::Fault& fault) {
    return fault.actor.kind != RoleKind::worker || fault.actor.index < first;
  });
  const auto job = make(plan, {});
  if (!job) return {.property = "the plan is valid", .report = job.error().text};
  return NodeLosses(*job).run();
}

}  // namespace leeway::sim
