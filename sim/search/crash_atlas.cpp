#include "sim/search/crash_atlas.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "core/text.hpp"
#include "messages/envelope.hpp"
#include "plan/groups.hpp"
#include "plan/local_steps.hpp"
#include "sim/chance.hpp"
#include "sim/search/dice.hpp"
#include "sim/simulation.hpp"

namespace leeway::sim {
namespace {

constexpr std::uint64_t kAtlasStream = 0x61746c61;

bool is_process(Address actor) {
  return actor.kind == RoleKind::worker || actor.kind == RoleKind::shard ||
         actor.kind == RoleKind::standby;
}

Victim victim_of(Address actor, const Plan& plan) {
  if (actor.kind == RoleKind::shard) return Victim::primary;
  if (actor.kind == RoleKind::standby) return Victim::standby;
  return plan.pipeline.stages > 1 ? Victim::stage : Victim::worker;
}

std::string kind_of(const Message& message) {
  const auto envelope = decode(message);
  return envelope ? std::string(leeway::name_of(envelope->body)) : "?";
}

/// Loses processes of one run after their messages.
class AtlasLosses {
 public:
  AtlasLosses(const std::shared_ptr<const Job>& job, std::vector<KillPoint> losses,
              std::uint64_t seed, const std::optional<TwoLosses>& wanted)
      : job_(job),
        losses_(std::move(losses)),
        wanted_(wanted),
        rng_(Rng::stream(seed, kAtlasStream)),
        redundant_(job->plan.shards, true) {
    SimulationOptions options;
    options.on_event = [this](Address actor, Instant at, const Event& event) {
      observe(actor, at, event);
    };
    options.ends_after = [this](Address from, Address, const Message& message) {
      return is_lost_after(from, message);
    };
    simulation_ = std::make_unique<Simulation>(job, std::vector<Audience*>{}, std::move(options));
  }

  AtlasRun run() {
    out_.trial = watch(*simulation_);
    if (out_.trial.property.empty() && simulation_->ended()) {
      const RunTotals& totals = simulation_->totals();
      samples = totals.end.samples_trained;
      for (const Blob& blob : totals.weights)
        out_.weights.insert(out_.weights.end(), blob.as_floats(),
                            blob.as_floats() + blob.size() / sizeof(float));
    }
    return std::move(out_);
  }
  std::map<Address, std::uint64_t> sends;  // of each process
  std::uint64_t samples = 0;               // trained

 private:
  void observe(Address actor, Instant at, const Event& event) {
    if (const auto* lost = event.as<event::PrimaryLost>()) redundant_[lost->shard.value()] = false;
    if (const auto* lost = event.as<event::StandbyLost>()) redundant_[lost->shard.value()] = false;
    if (const auto* seeded = event.as<event::StandbyInSync>())
      redundant_[seeded->shard.value()] = true;
    if (!event.as<event::BucketApplied>() || !lost_at_ || out_.standstill.ns >= 0) return;
    if (lost_.kind == RoleKind::worker || lost_.index == actor.index)
      out_.standstill = at - *lost_at_;
  }

  bool is_lost_after(Address from, const Message& message) {
    if (!is_process(from)) return false;
    ++sends[from];
    if (next_ == losses_.size()) return false;
    KillPoint& point = losses_[next_];
    if (next_ == 1 && point.actor == Address{}) {  // any process that may be lost now
      if (!may_be_lost(from)) {
        point.sends = std::max<std::uint64_t>(point.sends, 2) - 1;
        return false;
      }
      const TwoLosses two{out_.lost.first, victim_of(from, job_->plan), kind_of(message)};
      out_.possible.insert(two);
      if (wanted_ && two != *wanted_) return false;
      if (point.sends > 1) {
        --point.sends;
        return false;
      }
    } else if (from != point.actor || --point.sends > 0) {
      return false;
    }
    lose(from, message);
    return true;
  }
  /// A run does not survive the loss of both replicas, or of all members.
  bool may_be_lost(Address actor) const {
    Simulator& host = simulation_->host();
    if (actor.kind != RoleKind::worker) return redundant_[actor.index];
    const std::uint32_t stages = job_->stages->count();
    for (std::uint32_t first = 0; first < job_->plan.workers; first += stages) {
      if (actor.index / stages == first / stages) continue;
      bool lives = true;
      for (std::uint32_t i = first; i < first + stages; ++i) lives &= host.lives(worker(i));
      if (lives) return true;
    }
    return false;
  }
  void lose(Address actor, const Message& message) {
    Simulator& host = simulation_->host();
    if (actor.kind != RoleKind::worker) redundant_[actor.index] = false;
    if (next_++ == 0) {
      out_.was_lost = true;
      out_.lost.first = victim_of(actor, job_->plan);
      lost_ = actor;
      lost_at_ = host.now();
    } else {
      out_.second_was_lost = true;
      out_.lost.second = victim_of(actor, job_->plan);
      out_.lost.last_message = kind_of(message);
    }
    // It starts again after up to three times the detection time.
    const double away = uniform(rng_, 0.05, 3);
    host.at(host.now() + scaled(host.world().detection, away),
            [this, actor] { simulation_->start_again(actor); });
  }

  std::shared_ptr<const Job> job_;
  std::vector<KillPoint> losses_;
  const std::optional<TwoLosses> wanted_;
  Rng rng_;
  std::vector<bool> redundant_;  // by shard: both replicas live and are in sync
  std::size_t next_ = 0;         // of losses_
  Address lost_;
  std::optional<Instant> lost_at_;
  AtlasRun out_;
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace

std::string_view name_of(Victim victim) {
  constexpr std::string_view kNames[] = {"worker", "stage", "primary", "standby"};
  return kNames[static_cast<int>(victim)];
}

Expected<CrashAtlas> CrashAtlas::make(Plan plan, const MakeJob& make, std::uint64_t messages) {
  if (!plan.simulated) plan.simulated = plan::World{};
  if (has_agents(plan)) return Error{"--world agents: the atlas has no nodes; leave it out"};
  plan.replicas = 2;
  plan.faults.clear();
  if (plan.workers < 2 * workers_per_member(plan))
    return Error{
        "workers: with one worker, pipeline or host group, none may be lost; give --workers 2 or "
        "more"};
  for (std::uint64_t iterations = 4 * plan.workers;; iterations *= 2) {
    plan.stop = {.epochs = plan.stop.epochs, .iterations = iterations};
    const auto job = make(plan, {});
    if (!job) return job.error();
    CrashAtlas atlas(plan, *job);
    AtlasLosses none(*job, {}, 0, {});
    const AtlasRun whole = none.run();
    if (!whole.trial.property.empty())
      return Error{concat("a run without losses fails: ", whole.trial.report)};
    for (const auto& [actor, sends] : none.sends)
      for (std::uint64_t send = 1; send <= sends; ++send) atlas.points_.push_back({actor, send});
    atlas.weights_ = whole.weights;
    atlas.samples_ = none.samples;
    const bool is_whole = atlas.samples_ < iterations * iteration_samples(plan);
    if (atlas.points_.size() >= messages || is_whole) return atlas;
  }
}

bool CrashAtlas::is_exact() const {
  return std::holds_alternative<plan::Bsp>(plan_.consistency) &&
         plan_.balance == plan::Balance::equal;
}

AtlasRun CrashAtlas::lose_two(std::uint64_t seed, const std::optional<TwoLosses>& wanted) const {
  Rng rng = Rng::stream(seed, kAtlasStream, 1);
  if (wanted) {
    std::vector<KillPoint> suitable = points_;
    std::erase_if(suitable, [&](const KillPoint& point) {
      return victim_of(point.actor, plan_) != wanted->first;
    });
    if (suitable.empty()) return {};
    const KillPoint first = suitable[rng.below(suitable.size())];
    return run({first, {{}, 1 + rng.below(3)}}, seed, wanted);
  }
  const KillPoint first = points_[rng.below(points_.size())];
  // Soon after the first loss, or during the recovery.
  const std::uint64_t later = 1 + rng.below(rng.one_in(2) ? 20 : 150);
  return run({first, {{}, later}}, seed);
}

AtlasRun CrashAtlas::run(const std::vector<KillPoint>& points, std::uint64_t seed,
                         const std::optional<TwoLosses>& wanted) const {
  AtlasLosses losses(job_, points, seed ^ mix64(points.front().sends), wanted);
  AtlasRun out = losses.run();
  if (!out.trial.property.empty()) return out;
  if (losses.samples != samples_) {
    out.trial.property = "each sample is trained once";
    out.trial.damage = Damage::samples;
    out.trial.report =
        concat(losses.samples, " samples were trained, and ", samples_, " in a run without losses");
  } else if (is_exact() && out.lost.first >= Victim::primary &&
             (!out.second_was_lost || out.lost.second >= Victim::primary) &&
             out.weights != weights_) {
    out.trial.property = "the loss of replicas changes no bit";
    out.trial.damage = Damage::updates;
    out.trial.report = "the weights differ from those of a run without losses";
  }
  return out;
}

}  // namespace leeway::sim
