#include "sim/search/loss_trial.hpp"

#include <algorithm>
#include <utility>

#include "sim/search/dice.hpp"
#include "sim/search/node_loss_trial.hpp"
#include "sim/simulation.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint64_t kLossStream = 0x6c6f7373;

/// Takes replicas of shards away, and gives them back.
class Losses {
 public:
  Losses(const std::shared_ptr<const Job>& job, Duration detection)
      : detection_(detection), rng_(Rng::stream(job->plan.seed, kLossStream)) {
    SimulationOptions options;
    options.on_event = [this](Address, Instant, const Event& event) {
      if (const auto* in_sync = event.as<event::StandbyInSync>()) lose_later(in_sync->shard);
    };
    simulation_ = std::make_unique<Simulation>(job, std::vector<Audience*>{}, std::move(options));
    for (std::uint32_t shard = 0; shard < job->plan.shards; ++shard) lose_later(ShardId(shard));
  }

  Trial run() {
    Trial trial = watch(*simulation_);
    trial.losses = losses_;
    return trial;
  }

 private:
  Duration some(double most) {
    const double ns = uniform(rng_, 0, most) * static_cast<double>(detection_.ns);
    return nanoseconds(static_cast<std::int64_t>(ns));
  }
  void lose_later(ShardId shard) {
    Simulator& host = simulation_->host();
    const Address lost = rng_.one_in(3) ? standby_of(shard) : address_of(shard);
    const double until[] = {0.05, 1, 10};
    const Duration later = some(until[rng_.below(3)]), away = some(3);
    if (rng_.one_in(2)) break_link(shard);
    const bool with_messages = rng_.one_in(2);
    host.at(host.now() + later, [this, &host, shard, lost, away, with_messages] {
      ++losses_;
      // The last messages of a process can be lost with it, to some receivers and not to others.
      if (with_messages) lose_messages(shard);
      host.kill(lost, "lost on trial");
      host.at(host.now() + away, [this, lost] { simulation_->start_again(lost); });
    });
  }
  /// The link between the two replicas is broken for some time.
  void break_link(ShardId shard) {
    Simulator& host = simulation_->host();
    const Duration begin = some(1), lasts = some(0.8);
    host.at(host.now() + begin,
            [&host, shard] { host.sever(address_of(shard), standby_of(shard)); });
    host.at(host.now() + begin + lasts,
            [&host, shard] { host.mend(address_of(shard), standby_of(shard)); });
  }
  void lose_messages(ShardId shard) {
    Simulator& host = simulation_->host();
    host.sever(address_of(shard), standby_of(shard));
    host.mend(address_of(shard), standby_of(shard));
  }

  const Duration detection_;
  Rng rng_;
  std::uint64_t losses_ = 0;
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace

Trial try_losses(Plan plan, const MakeJob& make) {
  if (!plan.simulated) return try_plan(plan, make);
  if (has_agents(plan)) return try_node_losses(std::move(plan), make);
  plan.replicas = 2;
  std::erase_if(plan.faults,
                [](const plan::Fault& fault) { return fault.actor.kind != RoleKind::worker; });
  const auto job = make(plan, {});
  if (!job) return {.property = "the plan is valid", .report = job.error().text};
  return Losses(*job, World(*plan.simulated).detection).run();
}

}  // namespace leeway::sim
