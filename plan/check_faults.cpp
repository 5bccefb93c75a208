// Checks of stragglers and faults for validate().
#include <algorithm>
#include <set>

#include "core/limits.hpp"
#include "plan/checks.hpp"

namespace leeway {
namespace {

/// Whether only a simulated network can have the fault.
struct NeedsSimulation {
  bool operator()(const plan::Throws&) const { return false; }
  bool operator()(const plan::Killed&) const { return false; }
  bool operator()(const plan::Crash&) const { return false; }
  bool operator()(const plan::Joins&) const { return false; }
  bool operator()(const plan::Leaves&) const { return false; }
  bool operator()(const plan::Freeze&) const { return false; }
  bool operator()(const plan::Slow&) const { return true; }
  bool operator()(const plan::Breaks&) const { return true; }
  bool operator()(const plan::Delay&) const { return true; }
  bool operator()(const plan::Silence&) const { return true; }
  bool operator()(const plan::Partition&) const { return true; }
  bool operator()(const plan::SlowLink&) const { return true; }
  bool operator()(const plan::ClockStops&) const { return true; }
  bool operator()(const plan::Competes&) const { return true; }
};

/// Number of node agents of a simulated cluster; 0: there is none.
std::uint32_t agents_of(const Plan& plan) {
  return plan.simulated ? plan.simulated->agents : 0;
}

struct FaultCheck {
  Checks& checks;
  const Plan& plan;
  const plan::Fault& fault;
  const std::string name;  // "faults[2]"

  void check_node(const char* field, Address node) const {
    const std::uint32_t agents = agents_of(plan);
    checks.require(agents > 0, name, field,
                   ": only a simulated cluster has nodes; give it some, as "
                   "in --world agents=3");
    if (is_new_process() && node == fault.actor)
      checks.require(node.index > agents && node.index < limits::kMaxNodes, name, field, ": ", node,
                     " cannot be a new process; give node", agents + 1, " to node",
                     limits::kMaxNodes - 1);
    else
      checks.require(node.index <= agents || starts_later(node), name, field, ": there is no ",
                     node, "; give node0 for the program, or node1 to node", agents);
  }
  /// Whether the fault starts a process.
  bool is_new_process() const {
    return std::holds_alternative<plan::Joins>(fault.kind) ||
           std::holds_alternative<plan::Competes>(fault.kind);
  }
  bool starts_later(Address node) const {
    return std::any_of(plan.faults.begin(), plan.faults.end(), [&](const plan::Fault& other) {
      return other.actor == node && std::holds_alternative<plan::Joins>(other.kind);
    });
  }
  void check_actor(const char* field, Address actor) const {
    if (actor.kind == RoleKind::node) return check_node(field, actor);
    const bool worker = actor.kind == RoleKind::worker;
    const std::uint32_t count = worker ? plan.workers : plan.shards;
    if (actor.kind == RoleKind::standby)
      return checks.require(plan.replicas > 1 && actor.index < count, name, field, ": there is no ",
                            actor, "; give --replicas 2 and standby0 to standby",
                            std::int64_t{plan.shards} - 1);
    const bool known =
        actor == kScheduler || ((worker || actor.kind == RoleKind::shard) && actor.index < count);
    checks.require(known, name, field, ": there is no ", actor, "; give worker0 to worker",
                   std::int64_t{plan.workers} - 1, ", shard0 to shard",
                   std::int64_t{plan.shards} - 1, " or scheduler");
  }
  void require_worker(const char* kind) const {
    checks.require(fault.actor.kind == RoleKind::worker, name, ".", kind, ": ", fault.actor,
                   " cannot have this fault; give a worker");
  }
  /// Whether the fault is that of a replica, which another one replaces.
  bool is_of_replica() const {
    const RoleKind kind = fault.actor.kind;
    return plan.replicas > 1 && (kind == RoleKind::shard || kind == RoleKind::standby);
  }
  void require_worker_or_agent(const char* kind) const {
    const Address actor = fault.actor;
    checks.require(
        actor.kind == RoleKind::worker || (actor.kind == RoleKind::node && actor.index > 0), name,
        ".", kind, ": ", actor,
        " cannot have this fault; give a worker, or a node agent such as node1");
  }
  /// In a simulated cluster, connections and links are those of nodes.
  void require_node(const char* kind) const {
    checks.require(agents_of(plan) == 0 || fault.actor.kind == RoleKind::node, name, ".", kind,
                   ": ", fault.actor,
                   " has no network of its own in a simulated cluster; give a "
                   "node, such as node1");
  }
  void refuse_in_cluster(const char* kind) const {
    checks.require(agents_of(plan) == 0, name, ".", kind,
                   ": a simulated cluster cannot have this fault; leave out --world agents");
  }
  void check_peer(const char* field, Address other) const {
    check_actor(field, other);
    checks.require(other != fault.actor, name, field, ": ", other,
                   " is the actor itself; give another one");
    checks.require((other.kind == RoleKind::node) == (fault.actor.kind == RoleKind::node), name,
                   field, ": ", other, " and ", fault.actor,
                   " are no pair; give two nodes or two "
                   "actors");
  }
  void require_iteration(const char* kind) const {
    checks.require(std::holds_alternative<std::int64_t>(fault.at), name, ".", kind,
                   ": happens within an iteration; give at.iteration, as in --fault 2:", kind,
                   "@100");
  }

  void operator()(const plan::Throws&) const {
    require_worker("throws");
    require_iteration("throws");
  }
  void operator()(const plan::Killed&) const {
    require_worker("killed");
    require_iteration("killed");
  }
  void operator()(const plan::Crash& in) const {
    const RoleKind kind = fault.actor.kind;
    if (agents_of(plan) > 0 && !is_of_replica() && kind != RoleKind::node)
      require_worker_or_agent("crash");
    const bool is_program = kind == RoleKind::node && fault.actor.index == 0;
    checks.require(kind == RoleKind::worker || (kind == RoleKind::node && !is_program) ||
                       is_of_replica() || in.back == 0,
                   name, ".crash.back: ", fault.actor,
                   " cannot be restarted; give back = 0, a worker, or shards with --replicas 2");
  }
  void operator()(const plan::Joins&) const {
    require_worker_or_agent("joins");
    checks.require(std::holds_alternative<double>(fault.at), name,
                   ".joins: a worker that has not joined has no iterations; give at.seconds, as in "
                   "--fault 2:joins@3s");
  }
  void operator()(const plan::Breaks& in) const {
    require_node("breaks");
    check_peer(".breaks.peer", in.peer);
    const auto is_end = [&](RoleKind kind) {
      return fault.actor.kind == kind || in.peer.kind == kind;
    };
    const bool recovers = is_end(RoleKind::worker) || is_end(RoleKind::node) ||
                          (is_end(RoleKind::scheduler) && is_end(RoleKind::shard)) ||
                          is_end(RoleKind::standby);
    checks.require(recovers, name, ".breaks: a broken link between ", fault.actor, " and ", in.peer,
                   " ends the run; give a link of a worker or a standby, or of the scheduler to a "
                   "shard");
  }
  void operator()(const plan::Delay& in) const {
    refuse_in_cluster("delay");
    check_peer(".delay.peer", in.peer);
  }
  void operator()(const plan::Silence& in) const {
    require_node("silence");
    check_peer(".silence.peer", in.peer);
  }
  void operator()(const plan::Partition& in) const {
    require_node("partition");
    for (const Address actor : in.with) check_peer(".partition.with", actor);
  }
  void operator()(const plan::Leaves&) const { require_worker_or_agent("leaves"); }
  void operator()(const plan::Freeze&) const {
    checks.require(agents_of(plan) == 0 || fault.actor.kind == RoleKind::node ||
                       fault.actor.kind == RoleKind::worker,
                   name, ".freeze: ", fault.actor,
                   " freezes with its node in a simulated cluster; give a node or a worker");
  }
  void operator()(const plan::Slow&) const { refuse_in_cluster("slow"); }
  void operator()(const plan::SlowLink&) const { require_node("slow_link"); }
  void operator()(const plan::ClockStops&) const { refuse_in_cluster("clock_stops"); }
  void operator()(const plan::Competes&) const {
    checks.require(fault.actor.kind == RoleKind::node, name, ".competes: ", fault.actor,
                   " is no program; give the number of a new node, such as node5");
    checks.require(std::holds_alternative<double>(fault.at), name,
                   ".competes: another program has no iterations; give at.seconds, as in "
                   "--fault 'node5:competes(2s)@3s'");
  }
};

void check_fault(Checks& checks, const Plan& plan, const plan::Fault& fault,
                 const std::string& name) {
  const FaultCheck check{checks, plan, fault, name};
  check.check_actor(".actor", fault.actor);
  std::visit(check, fault.kind);
  checks.require(plan.simulated || !std::visit(NeedsSimulation(), fault.kind), name,
                 ": needs a simulated network; give --simulate, or a fault that a worker of this "
                 "process can have: throws, killed, crash, joins, leaves or freeze");
  const bool can_crash = check.is_of_replica() && std::holds_alternative<plan::Crash>(fault.kind);
  checks.require(plan.simulated || can_crash || fault.actor.kind == RoleKind::worker, name,
                 ".actor: ", fault.actor,
                 " can only have this fault in a simulation; give a worker, --simulate, or with "
                 "--replicas 2 a crash of a shard");
  checks.require(plan.simulated || !can_crash || std::holds_alternative<double>(fault.at), name,
                 ": ", fault.actor,
                 " has no iterations; give a time, as in --fault shard0:crash@3s");
}

void check_workers(Checks& checks, const Plan& plan, const plan::Straggler& it,
                   const std::string& name) {
  const auto check = [&](const char* field, std::uint32_t worker) {
    checks.require(worker < plan.workers, name, field, ": there is no worker ", worker,
                   "; give --slow a worker from 0 to ", std::int64_t{plan.workers} - 1,
                   ", or more --workers");
  };
  check(".worker", it.worker);
  checks.require(!it.all || it.worker == 0, name, ".worker: ", it.worker,
                 " is given, and all = true as well; keep one of the two");
  for (const std::uint32_t worker : it.together) check(".together", worker);
  checks.require(it.together.empty() || (it.worker == 0 && !it.all), name,
                 ".together: another worker or all = true is given as well; keep one of them");
  const std::set<std::uint32_t> distinct(it.together.begin(), it.together.end());
  checks.require(distinct.size() == it.together.size(), name,
                 ".together: names a worker twice; give each once");
}

void check_factors(Checks& checks, const plan::Straggler& it, const std::string& name) {
  if (const auto* repeated = std::get_if<plan::Repeated>(&it.kind)) {
    checks.require(!repeated->factors.empty(), name,
                   ".repeated.factors: is empty; give factors, as in --slow '3:repeated(4,1)'");
    for (const double factor : repeated->factors)
      checks.require(factor >= 1 && factor <= plan::kMaxSlowdown, name,
                     ".repeated.factors: ", factor,
                     " is not allowed; give factors from 1 to 1000000");
  }
  if (const auto* sharing = std::get_if<plan::Sharing>(&it.kind))
    checks.require(sharing->phase < std::int64_t{sharing->on} + sharing->off, name,
                   ".sharing.phase: ", sharing->phase, " is not within the cycle of ",
                   std::int64_t{sharing->on} + sharing->off,
                   " iterations; give less, or -1 for a random phase");
}

}  // namespace

void check_stragglers(Checks& checks, const Plan& plan) {
  for (std::size_t i = 0; i < plan.stragglers.size(); ++i) {
    const plan::Straggler& it = plan.stragglers[i];
    const std::string name = concat("stragglers[", i, "]");
    check_workers(checks, plan, it, name);
    check_factors(checks, it, name);
    const auto* share = std::get_if<double>(&it.from);
    checks.require(!share || *share == 0 || plan.stop.epochs > 0 || plan.stop.iterations > 0, name,
                   ".from.share: the run has no limit of epochs or iterations of which to take a "
                   "share; give --epochs, or an iteration as in --slow 3:4x@from=100");
    const auto* pauses = std::get_if<plan::Pauses>(&it.kind);
    const auto* seconds = pauses ? std::get_if<double>(&pauses->every) : nullptr;
    checks.require(!seconds || pauses->length_ms < *seconds * 1e3, name,
                   ".pauses.length_ms: a pause of ", pauses ? pauses->length_ms : 0, " ms every ",
                   seconds ? *seconds : 0,
                   " s leaves no time to work; give shorter or rarer pauses");
  }
}

void check_faults(Checks& checks, const Plan& plan) {
  checks.require(plan.faults.size() <= limits::kMaxWorkers, "faults: ", plan.faults.size(),
                 " are too many; give at most ", limits::kMaxWorkers);
  std::set<Address> joiners;
  std::size_t workers = 0;  // that join
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    check_fault(checks, plan, plan.faults[i], concat("faults[", i, "]"));
    const plan::FaultKind& kind = plan.faults[i].kind;
    const bool competes = std::holds_alternative<plan::Competes>(kind);
    if (!std::holds_alternative<plan::Joins>(kind) && !competes) continue;
    workers += plan.faults[i].actor.kind == RoleKind::worker ? 1 : 0;
    checks.require(joiners.insert(plan.faults[i].actor).second, "faults[", i,
                   competes ? "].competes: " : "].joins: ", plan.faults[i].actor,
                   " begins twice; give each its own number");
  }
  checks.require(workers < plan.workers, "faults: all ", plan.workers,
                 " workers join late; let at least one start with the run");
}

}  // namespace leeway
