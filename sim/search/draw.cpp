#include "sim/search/draw.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/limits.hpp"
#include "plan/groups.hpp"
#include "sim/search/dice.hpp"
#include "sim/search/draw_cluster.hpp"
#include "sim/search/draw_pipelines.hpp"
#include "sim/search/draw_training.hpp"

namespace leeway::sim {

namespace {

constexpr std::uint64_t kDrawStream = 0x64726177;
// Separate streams, so that these draws do not change the rest of a plan.
constexpr std::uint64_t kPipelineStream = 0x70697065;
constexpr std::uint64_t kQuorumStream = 0x71756f72;
constexpr std::uint64_t kAutomaticStream = 0x6175746f;
constexpr std::uint64_t kGroupStream = 0x67726f75;
constexpr std::uint64_t kClusterDrawStream = 0x6e6f6465;
constexpr std::uint64_t kOrderStream = 0x6f726465;
constexpr std::uint64_t kStandbyStream = 0x73746279;

class Draw {
 public:
  Draw(const Job& base, std::uint64_t seed, const DrawLimits& limits)
      : base_(base),
        limits_(limits),
        rng_(Rng::stream(seed, kDrawStream)),
        plan_(base.plan),
        model_(base.model) {
    plan_.seed = seed;
    plan_.pipeline = {};
  }

  Plan plan() {
    counts();
    consistency();
    pipelines();
    groups();
    draw_training(plan_);
    data();
    world();
    stragglers();
    time_limit();
    faults();
    lost_orders();
    cluster();
    return std::move(plan_);
  }

 private:
  std::uint32_t between(std::uint32_t least, std::uint32_t most) {
    return sim::between(rng_, least, most);
  }
  double uniform(double least, double most) { return sim::uniform(rng_, least, most); }
  /// From `least` to about `least` times 2^doublings; every power of two is equally likely.
  double magnitude(double least, std::uint32_t doublings) {
    return least * static_cast<double>(std::uint64_t{1} << between(0, doublings)) * uniform(1, 1.9);
  }

  void counts() {
    plan_.workers = between(limits_.least_workers, limits_.most_workers);
    const auto blocks = static_cast<std::uint32_t>(base_.layout->blocks().size());
    plan_.shards = between(1, std::min(limits_.most_shards, blocks));
    plan_.batch = between(1, 8);
    plan_.micro_batches = 1;
    plan_.lease_size = rng_.one_in(2) ? 0 : plan_.batch * between(1, 6);
    plan_.device = "cpu";
  }

  void consistency() {
    plan_.prefetch = false;
    switch (rng_.below(8)) {
      case 0:
      case 1:
        plan_.consistency = plan::Bsp{};
        break;
      case 2:
        plan_.consistency = plan::Asp{};
        break;
      case 3:
        plan_.consistency = plan::Backup{between(1, std::min(2u, plan_.workers - 1))};
        quorum();
        break;
      case 4:
        plan_.consistency = plan::Adaptive{1, between(2, 8)};
        plan_.prefetch = rng_.one_in(2);
        automatic();
        break;
      default:
        plan_.consistency = plan::Ssp{between(0, 4)};
        plan_.prefetch = std::get<plan::Ssp>(plan_.consistency).staleness > 0 && rng_.one_in(2);
    }
    if (std::holds_alternative<plan::Asp>(plan_.consistency)) plan_.prefetch = rng_.one_in(2);
    plan_.balance = rng_.one_in(4) ? plan::Balance::by_speed : plan::Balance::equal;
  }

  /// Some of the moving bounds start with the largest.
  void automatic() {
    Rng rng = Rng::stream(plan_.seed, kAutomaticStream);
    if (!rng.one_in(2)) return;
    plan_.consistency = plan::Automatic{1 + static_cast<std::uint32_t>(rng.below(8))};
    plan_.prefetch = false;
  }
  /// Some of the rounds that drop pushes have a grace window.
  void quorum() {
    Rng rng = Rng::stream(plan_.seed, kQuorumStream);
    if (!rng.one_in(2)) return;
    plan::Quorum quorum{.count = 1 + static_cast<std::uint32_t>(rng.below(plan_.workers))};
    quorum.mad = rng.one_in(3);
    if (!quorum.mad && !rng.one_in(3)) quorum.grace_ms = sim::uniform(rng, 0.01, 20);
    plan_.consistency = quorum;
  }

  void pipelines() {
    Rng rng = Rng::stream(plan_.seed, kPipelineStream);
    const bool asked = base_.plan.pipeline.stages > 1;
    if (!limits_.pipelines || (!asked && !rng.one_in(3))) return;
    auto model = draw_pipelines(base_, rng, plan_);
    if (!model) return;
    model_ = std::move(model);
    const auto blocks = Layout(*model_, 1, limits::kMaxBlockBytes).blocks().size();
    plan_.shards = between(1, std::min(limits_.most_shards, static_cast<std::uint32_t>(blocks)));
  }
  /// One to three host groups; sometimes each is on one node.
  void groups() {
    plan_.aggregate = plan::NoGroups{};
    Rng rng = Rng::stream(plan_.seed, kGroupStream);
    if (piped() || !std::holds_alternative<plan::Bsp>(plan_.consistency) || !rng.one_in(3)) return;
    const std::uint32_t group = sim::between(rng, 2, 4);
    const std::uint32_t least = (limits_.least_workers + group - 1) / group;
    plan_.workers = group * sim::between(rng, least, std::max(least, limits_.most_workers / group));
    plan_.aggregate = plan::GroupsOf{group};
    share_nodes_ = rng.one_in(2);
  }
  void cluster() {
    Rng rng = Rng::stream(plan_.seed, kClusterDrawStream);
    if (limits_.cluster_one_in > 0 && rng.one_in(limits_.cluster_one_in))
      draw_cluster(rng, plan_, length_, limits_.iterations / members());
    else
      standbys();
  }
  bool piped() const { return plan_.pipeline.stages > 1; }
  /// Number of workers, pipelines or host groups that lease samples.
  std::uint32_t members() const { return plan_.workers / workers_per_member(plan_); }
  bool has_several() const { return workers_per_member(plan_) > 1; }

  void data() {
    const std::uint64_t samples = limits_.iterations * plan_.batch * workers_per_group(plan_);
    plan_.stop = {.epochs = 1e6, .iterations = limits_.iterations};
    plan_.evaluate_every = 0;
    if (auto* made = std::get_if<plan::Synthetic>(&plan_.data)) {
      const std::uint32_t epochs = between(1, 4);
      made->samples = static_cast<std::uint32_t>(samples / epochs) + between(1, plan_.batch);
      made->test_samples = 16;
      if (rng_.one_in(3)) {
        plan_.stop.iterations -= between(0, members());  // usually uneven among members
      } else {
        plan_.stop = {.epochs = static_cast<double>(epochs)};
      }
      plan_.evaluate_every = rng_.one_in(2) ? 0 : uniform(0.2, 1);
    }
  }

  void world() {
    plan::World& world = plan_.simulated.emplace();
    world.cost_only = base_.cost_only;
    world.nodes = rng_.one_in(4) ? plan::World::Nodes::one : plan::World::Nodes::each;
    world.workers_per_node = share_nodes_ ? workers_per_group(plan_) : 1;
    world.cores = between(1, 4);
    step_seconds_ = magnitude(2e-4, 6);
    world.speed = std::clamp(
        3 * static_cast<double>(model_->flops_per_sample()) * plan_.batch / step_seconds_ / 1e9,
        1e-9, 1e9);
    world.memory = 1e9;
    world.noise = uniform(0, 0.5);
    world.latency_us = magnitude(10, 8);
    world.local_latency_us = magnitude(1, 4);
    // With much jitter, messages to different actors overtake each other.
    world.jitter = rng_.one_in(2) ? 0.2 : magnitude(0.1, 7);
    world.link = magnitude(0.01, 10);
    // Long enough that a slow network does not cause an eviction.
    length_ = step_seconds_ * static_cast<double>(limits_.iterations) / members();
    const double message = 1e-6 * (1 + world.jitter) * world.latency_us;
    detection_ = std::max({length_ / uniform(10, 40), 4 * message, 1e-3});
    world.detection_ms = detection_ * 1e3;
  }

  /// Sometimes all workers are stopped in the middle of their work.
  void time_limit() {
    if (rng_.one_in(4)) plan_.stop.seconds = uniform(0.1, 1) * length_;
  }

  std::uint32_t any_worker() { return between(0, plan_.workers - 1); }
  /// Often the worker of the previous fault, because overlapping faults find more bugs.
  Address faulty_worker() {
    if (faulty_ == 0 || rng_.one_in(2)) faulty_ = between(1, plan_.workers - 1);
    return address_of(WorkerId(faulty_));
  }
  /// Whether the worker belongs to the first member, which is present at the end. A single worker 0
  /// gets no fault.
  bool has_to_stay(Address worker) const { return worker.index < workers_per_member(plan_); }
  /// The next or the previous stage, or a worker of the group: its lead, or one if this is the
  /// lead.
  Address neighbour(Address stage) {
    const std::uint32_t stages = workers_per_member(plan_), at = stage.index % stages;
    if (!piped())
      return address_of(WorkerId(at > 0 ? stage.index - at : stage.index + between(1, stages - 1)));
    const bool next = at == 0 || (at + 1 < stages && rng_.one_in(2));
    return address_of(WorkerId(next ? stage.index + 1 : stage.index - 1));
  }
  Address any_shard() { return address_of(ShardId(between(0, plan_.shards - 1))); }

  void stragglers() {
    plan_.stragglers.clear();
    for (std::uint32_t i = between(0, 3); i > 0; --i) {
      const std::vector<plan::StragglerKind> kinds = {
          plan::ConstantFactor{uniform(1, 8)},
          plan::Bursts{uniform(2, 20), uniform(0.05, 0.5), between(1, 20)},
          plan::Pareto{uniform(1, 3), 50},
          plan::Pauses{step_seconds_ * 1e3 * uniform(1, 30), between(5, 50)},
          plan::Decay{uniform(1, 10), between(10, 100)},
          plan::Sharing{uniform(2, 10), between(5, 30), between(5, 60)}};
      plan::Straggler straggler{any_worker(), rng_.one_in(4), kinds[rng_.below(kinds.size())]};
      if (straggler.all) straggler.worker = 0;
      plan_.stragglers.push_back(std::move(straggler));
    }
  }

  /// An iteration or a time, often during the start or the end, when many messages are sent once.
  plan::FaultTime when() {
    if (plan_.stop.seconds > 0 && rng_.one_in(4))
      return std::max(0.0, plan_.stop.seconds - uniform(0, 1) * detection_);
    const auto last = static_cast<std::int64_t>(limits_.iterations / members());
    const auto any = static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(last) + 1));
    switch (rng_.below(8)) {
      case 0:
        return while_joining();
      case 1:
        return last - std::min<std::int64_t>(last, between(0, 3));
      case 2:
      case 3:
      case 4:
        return any;
      default:
        return uniform(0, length_);
    }
  }
  /// In seconds, during the first few messages.
  double while_joining() {
    return uniform(0, 5e-6) * plan_.simulated->latency_us * (1 + plan_.simulated->jitter / 2);
  }
  /// Sometimes during the previous fault, or shortly after it.
  plan::FaultTime when_or_soon() {
    if (plan_.faults.empty() || rng_.one_in(2)) return when();
    const plan::FaultTime& before = plan_.faults.back().at;
    if (const auto* iteration = std::get_if<std::int64_t>(&before))
      return *iteration + between(0, 2);
    return std::get<double>(before) + uniform(0, 2) * detection_;
  }
  /// Below the detection time.
  double brief() { return uniform(0.05, 0.8) * detection_; }
  /// Below or above the detection time.
  double any_length() { return rng_.one_in(2) ? brief() : uniform(1, 5) * detection_; }

  bool joins_late(Address worker) const {
    return std::any_of(plan_.faults.begin(), plan_.faults.end(), [&](const plan::Fault& fault) {
      return fault.actor == worker && std::holds_alternative<plan::Joins>(fault.kind);
    });
  }
  plan::Fault worker_fault() {
    const Address worker = faulty_worker();
    if (has_several() && (has_to_stay(worker) || rng_.one_in(3))) return stage_fault(worker);
    const Address peer = rng_.one_in(3) ? kScheduler : any_shard();
    plan::Fault fault{worker, when_or_soon(), 0, plan::Freeze{any_length()}};
    const auto within_iteration = [&](plan::FaultKind kind) {
      fault.at = static_cast<std::int64_t>(rng_.below(limits_.iterations / members() + 1));
      fault.kind = kind;
    };
    switch (rng_.below(13)) {
      case 0:
        within_iteration(plan::Throws{});
        break;
      case 1:
        within_iteration(plan::Killed{});
        break;
      case 2:
        fault.kind = plan::Crash{rng_.one_in(3) ? 0 : any_length()};
        break;
      case 3:
        if (joins_late(worker)) break;
        fault.at = uniform(0, length_);
        fault.kind = plan::Joins{};
        break;
      case 4:
        break;
      case 5:
      case 6:
      case 7:
        fault.kind = plan::Breaks{peer, any_length()};
        if (peer == kScheduler && rng_.one_in(3)) fault.at = while_joining();
        break;
      case 8:
        fault.kind = plan::Silence{peer, any_length()};
        break;
      case 9:
        fault.kind = plan::Partition{{}, any_length()};
        break;
      case 10:
        fault.kind = plan::Delay{peer, any_length() * 1e3 / 10, any_length()};
        break;
      case 11:
        fault.kind = plan::Leaves{};
        break;
      default:
        fault.kind = plan::SlowLink{uniform(2, 50), any_length()};
    }
    return fault;
  }

  /// A fault after which the stage comes back.
  plan::Fault stage_fault(Address stage) {
    const Address peer = rng_.one_in(3) ? any_shard() : neighbour(stage);
    plan::Fault fault{stage, when_or_soon(), 0, plan::Breaks{peer, any_length()}};
    switch (rng_.below(10)) {
      case 0:
      case 1:
        fault.kind = plan::Crash{any_length()};
        break;
      case 2:
        // Two overlapping freezes may exceed the detection time.
        if (!has_to_stay(stage) || !std::exchange(stage_away_, true))
          fault.kind = plan::Freeze{brief()};
        break;
      case 3:
        fault.kind = plan::Silence{peer, any_length()};
        break;
      case 4:
        fault.kind = plan::Delay{peer, any_length() * 1e3 / 10, any_length()};
        break;
      case 5:
        fault.kind = plan::SlowLink{uniform(2, 50), any_length()};
        break;
      case 6:
        fault.kind = plan::Slow{brief() * 1e3 / 10, any_length()};
        break;
      default:
        break;
    }
    return fault;
  }
  /// A stage crashes and restarts while its connection to a neighbour is broken.
  void crash_during_broken_link() {
    const Address stage = faulty_worker(), peer = neighbour(stage);
    const double at = uniform(0, length_), apart = uniform(0.5, 4) * detection_;
    plan_.faults.push_back({stage, at, 0, plan::Breaks{peer, apart}});
    plan_.faults.push_back({rng_.one_in(2) ? stage : peer, at + uniform(0, 1) * apart, 0,
                            plan::Crash{uniform(0.1, 1) * apart}});
  }

  /// A fault of a shard or the scheduler.
  plan::Fault other_fault() {
    const Address actor = rng_.one_in(2) ? kScheduler : any_shard();
    const Address peer = actor == kScheduler ? any_shard() : kScheduler;
    plan::Fault fault{actor, when_or_soon(), 0, plan::Slow{brief() * 1e3 / 10, any_length()}};
    switch (rng_.below(6)) {
      case 0:
        // Two overlapping faults may exceed the detection time.
        if (!std::exchange(away_, true)) fault.kind = plan::Freeze{brief()};
        break;
      case 1:
        if (!std::exchange(away_, true)) fault.kind = plan::Silence{peer, brief()};
        break;
      case 2:
        fault.kind = plan::Delay{peer, any_length() * 1e3, any_length()};
        break;
      case 3:
        fault.kind = plan::SlowLink{uniform(2, 50), any_length()};
        break;
      case 4:
        fault.kind = plan::ClockStops{any_length()};
        break;
      default:
        break;
    }
    return fault;
  }

  /// A worker restarts before a shard receives its earlier messages.
  void delayed_messages_of_crashed_worker() {
    const Address worker = faulty_worker();
    const double at = uniform(0, length_), silent = uniform(2, 6) * detection_;
    plan_.faults.push_back({worker, at, 0, plan::Silence{any_shard(), silent}});
    plan_.faults.push_back(
        {worker, at + uniform(0, 0.5) * silent, 0, plan::Crash{uniform(0.1, 0.5) * silent}});
  }

  /// A worker joins late. One shard gets its admission late, another its first iteration.
  void uneven_admission() {
    const Address worker = faulty_worker();
    const auto shard = between(0, plan_.shards - 2);
    const double at = uniform(0, length_), late = uniform(0.1, 5) * detection_;
    if (!joins_late(worker)) plan_.faults.push_back({worker, at, 0, plan::Joins{}});
    for (const std::uint32_t one : {shard, shard + 1})
      plan_.faults.push_back({address_of(ShardId(one)), at + (one == shard ? 0 : late), 0,
                              plan::Delay{kScheduler, late * 1e3, 3 * late}});
  }

  void faults() {
    plan_.faults.clear();
    for (std::uint32_t i = between(1, 5); i > 0; --i)
      plan_.faults.push_back(rng_.one_in(4) ? other_fault() : worker_fault());
    if (rng_.one_in(6)) delayed_messages_of_crashed_worker();
    if (rng_.one_in(6) && plan_.shards > 1) uneven_admission();
    if (has_several() && rng_.one_in(3)) crash_during_broken_link();
  }

  /// The link between the scheduler and a shard breaks, often during another fault.
  void lost_orders() {
    Rng rng = Rng::stream(plan_.seed, kOrderStream);
    if (away_ || !rng.one_in(3)) return;
    plan::FaultTime at = sim::uniform(rng, 0, length_);
    if (!rng.one_in(3)) at = plan_.faults[rng.below(plan_.faults.size())].at;
    const auto shard = ShardId(sim::between(rng, 0, plan_.shards - 1));
    plan_.faults.push_back(
        {kScheduler, at, 0,
         plan::Breaks{address_of(shard), sim::uniform(rng, 0.05, 0.8) * detection_}});
  }

  /// Sometimes each shard has a standby, and some shards lose one of their replicas.
  void standbys() {
    Rng rng = Rng::stream(plan_.seed, kStandbyStream);
    if (!rng.one_in(3)) return;
    plan_.replicas = 2;
    for (std::uint32_t i = 0; i < plan_.shards; ++i) {
      const Address primary = address_of(ShardId(i)), second = standby_of(ShardId(i));
      plan::FaultTime at = sim::uniform(rng, 0, length_);
      if (rng.one_in(3) && !plan_.faults.empty())
        at = plan_.faults[rng.below(plan_.faults.size())].at;
      const double brief = sim::uniform(rng, 0.05, 0.8) * detection_;
      // The other faults of a shard may add up to its loss.
      const bool may_be_lost = !away_ && !rng.one_in(4);
      const double away = sim::uniform(rng, 0.05, 4) * detection_;
      plan::Fault fault{rng.one_in(3) ? second : primary, at, 0, plan::Breaks{primary, brief}};
      if (may_be_lost) {
        switch (rng.below(3)) {
          case 0:
            fault.kind = plan::Crash{rng.one_in(3) ? 0 : away};
            break;
          case 1:
            fault.kind = plan::Freeze{away};
            break;
          default:
            fault.kind = plan::Silence{kScheduler, away};
        }
      } else {
        fault.actor = second;
      }
      plan_.faults.push_back(std::move(fault));
    }
  }

  const Job& base_;
  const DrawLimits limits_;
  Rng rng_;
  Plan plan_;
  std::shared_ptr<const Model> model_;
  std::uint32_t faulty_ = 0;  // worker of its last fault; 0: none yet
  bool share_nodes_ = false;  // each host group is on one node
  bool away_ = false;         // a shard or the scheduler is silent at some time
  bool stage_away_ = false;   // so is a stage of the first pipeline
  double step_seconds_ = 0;   // of one iteration without stragglers
  double length_ = 0;         // approximate duration of the run in seconds
  double detection_ = 0;      // seconds
};

}  // namespace

Plan draw_plan(const Job& base, std::uint64_t seed, const DrawLimits& limits) {
  return Draw(base, seed, limits).plan();
}

}  // namespace leeway::sim
