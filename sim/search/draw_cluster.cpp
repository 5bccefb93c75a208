#include "sim/search/draw_cluster.hpp"

#include <utility>

#include "core/text.hpp"
#include "plan/groups.hpp"
#include "sim/search/dice.hpp"

namespace leeway::sim {
namespace {

class DrawCluster {
 public:
  DrawCluster(Rng& rng, Plan& plan, double length, std::uint64_t iterations)
      : rng_(rng),
        plan_(plan),
        world_(*plan.simulated),
        length_(length),
        iterations_(iterations),
        silence_(world_.detection_ms * 1e-3) {}

  void draw() {
    world_.agents = between(rng_, 2, 4);
    place();
    plan_.faults.clear();
    if (rng_.one_in(8)) lose_node_unseen();
    for (std::uint32_t i = between(rng_, 1, 5); i > 0; --i)
      plan_.faults.push_back(rng_.one_in(4) ? worker_fault() : node_fault());
    for (std::uint32_t i = between(rng_, 0, 2); i > 0; --i)
      plan_.faults.push_back({node(++last_node()), when(), 0, plan::Joins{}});
    if (rng_.one_in(4))
      plan_.faults.push_back({node(++last_node()), when(), 0, plan::Competes{any_length()}});
    if (rng_.one_in(16)) plan_.faults.push_back({node(0), when(), 0, plan::Crash{}});
    if (rng_.one_in(4)) draw_start();
  }

 private:
  static Address node(std::uint32_t number) { return {RoleKind::node, number}; }
  std::uint32_t& last_node() {
    if (last_node_ == 0) last_node_ = world_.agents;
    return last_node_;
  }

  /// Faults also before the start, in which a message takes the time of some latencies.
  void draw_start() {
    world_.faults_from = plan::World::FaultsFrom::call;
    if (rng_.one_in(2)) world_.at_least = between(rng_, 1, world_.agents);
    for (plan::Fault& fault : plan_.faults)
      if (auto* at = std::get_if<double>(&fault.at); at && rng_.one_in(2))
        *at = uniform(rng_, 0, rng_.one_in(2) ? 1e-5 : 1e-4) * world_.latency_us;
  }

  void place() {
    world_.place = rng_.one_in(3) ? "shards=0" : "shards=1";
    const std::uint32_t first = workers_per_member(plan_);
    for (std::uint32_t stage = 0; stage < first; ++stage)
      world_.place += concat(",worker", stage, "=1");
    later_ = first == 1 && plan_.workers > 2 && rng_.one_in(4);
    if (later_) world_.place += concat(",worker", plan_.workers - 1, "=later");
  }

  /// Often during the start, the end or the previous fault.
  double when() {
    if (rng_.one_in(4)) return uniform(rng_, 0, 8e-6) * world_.latency_us;
    if (!plan_.faults.empty() && rng_.one_in(3))
      if (const auto* before = std::get_if<double>(&plan_.faults.back().at))
        return *before + uniform(rng_, 0, rng_.one_in(2) ? 0.2 : 8) * silence_;
    return rng_.one_in(6) ? uniform(rng_, 0.9, 1.1) * length_ : uniform(rng_, 0, 1) * length_;
  }
  /// Below the silence limit.
  double brief() { return uniform(rng_, 0.05, 0.8) * silence_; }
  /// Up to beyond all limits of a cluster.
  double any_length() {
    switch (rng_.below(3)) {
      case 0:
        return brief();
      case 1:
        return uniform(rng_, 1, 5) * silence_;
      default:
        return uniform(rng_, 5, 30) * silence_;
    }
  }
  /// A node that may be lost: often the one of the previous fault.
  std::uint32_t any_node() {
    if (node_ == 0 || rng_.one_in(2)) node_ = between(rng_, 2, world_.agents);
    return node_;
  }
  std::uint32_t any_peer(std::uint32_t of) {
    const std::uint32_t peer = between(rng_, 0, world_.agents - 1);
    return peer < of ? peer : peer + 1;
  }

  plan::Fault node_fault() {
    const std::uint32_t one = any_node();
    const Address peer = node(any_peer(one));
    plan::Fault fault{node(one), when(), 0, plan::Breaks{peer, any_length()}};
    switch (rng_.below(12)) {
      case 0:
      case 1:
        fault.kind = plan::Crash{rng_.one_in(2) ? 0 : any_length()};
        break;
      case 2:
      case 3:
        fault.kind = plan::Freeze{any_length()};
        break;
      case 4:
        fault.kind = plan::Leaves{};
        break;
      case 5:
      case 6:
        fault.kind = plan::Silence{peer, any_length()};
        break;
      case 7:
        fault.actor = peer;
        fault.kind = plan::Silence{node(one), any_length()};
        break;
      case 8:
        fault.kind = plan::Partition{{}, any_length()};
        break;
      case 9:
        fault.kind = plan::SlowLink{uniform(rng_, 2, 50), any_length()};
        break;
      case 10:
        return brief_fault();
      default:
        break;
    }
    return fault;
  }

  /// Of the program or node 1. Two that overlap may exceed the silence limit.
  plan::Fault brief_fault() {
    const std::uint32_t one = between(rng_, 0, 1);
    plan::Fault fault{node(one), when(), 0, plan::SlowLink{uniform(rng_, 2, 10), any_length()}};
    if (std::exchange(away_, true)) return fault;
    if (rng_.one_in(2))
      fault.kind = plan::Freeze{brief()};
    else
      fault.kind = plan::Breaks{node(1 - one), brief()};
    return fault;
  }

  /// A node ends while the program is frozen, which then gets its last messages and the news of its
  /// end at once.
  void lose_node_unseen() {
    away_ = true;
    const double at = when(), length = brief();
    plan_.faults.push_back({node(0), at, 0, plan::Freeze{length}});
    plan_.faults.push_back({node(any_node()), at + uniform(rng_, 0, 1) * length, 0,
                            plan::Crash{rng_.one_in(2) ? 0 : any_length()}});
  }

  plan::Fault worker_fault() {
    const std::uint32_t stages = workers_per_member(plan_);
    if (plan_.workers <= stages) return node_fault();
    const Address worker =
        address_of(WorkerId(between(rng_, stages, plan_.workers - (later_ ? 2u : 1u))));
    if (worker.index < stages) return node_fault();
    plan::Fault fault{worker, when(), 0, plan::Crash{rng_.one_in(3) ? 0 : any_length()}};
    const auto within_iteration = [&](plan::FaultKind kind) {
      fault.at = static_cast<std::int64_t>(rng_.below(iterations_ + 1));
      fault.kind = kind;
    };
    switch (rng_.below(6)) {
      case 0:
        within_iteration(plan::Throws{});
        break;
      case 1:
        within_iteration(plan::Killed{});
        break;
      case 2:
        if (stages == 1) fault.kind = plan::Leaves{};
        break;
      case 3:
        fault.kind = plan::Freeze{any_length()};
        break;
      default:
        break;
    }
    return fault;
  }

  Rng& rng_;
  Plan& plan_;
  plan::World& world_;
  const double length_;
  const std::uint64_t iterations_;
  const double silence_;
  std::uint32_t node_ = 0;       // of the last fault; 0: none yet
  std::uint32_t last_node_ = 0;  // the highest number
  bool later_ = false;           // the last worker waits for a node that joins
  bool away_ = false;            // a brief fault is drawn
};

}  // namespace

void draw_cluster(Rng& rng, Plan& plan, double length, std::uint64_t iterations) {
  DrawCluster(rng, plan, length, iterations).draw();
}

}  // namespace leeway::sim
