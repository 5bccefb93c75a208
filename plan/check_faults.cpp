// Checks of stragglers and faults for validate().
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
};

struct FaultCheck {
  Checks& checks;
  const Plan& plan;
  const plan::Fault& fault;
  const std::string name;  // "faults[2]"

  void check_actor(const char* field, Address actor) const {
    const bool worker = actor.kind == RoleKind::worker;
    const std::uint32_t count = worker ? plan.workers : plan.shards;
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
  void check_peer(const char* field, Address other) const {
    check_actor(field, other);
    checks.require(other != fault.actor, name, field, ": ", other,
                   " is the actor itself; give another one");
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
    checks.require(fault.actor.kind == RoleKind::worker || in.back == 0, name,
                   ".crash.back: ", fault.actor,
                   " cannot be restarted; give back = 0, or a worker");
  }
  void operator()(const plan::Joins&) const {
    require_worker("joins");
    checks.require(std::holds_alternative<double>(fault.at), name,
                   ".joins: a worker that has not joined has no iterations; give at.seconds, as in "
                   "--fault 2:joins@3s");
  }
  void operator()(const plan::Breaks& in) const {
    check_peer(".breaks.peer", in.peer);
    const bool worker = fault.actor.kind == RoleKind::worker || in.peer.kind == RoleKind::worker;
    checks.require(worker, name, ".breaks: a broken link between ", fault.actor, " and ", in.peer,
                   " ends the run; give a link of a worker");
  }
  void operator()(const plan::Delay& in) const { check_peer(".delay.peer", in.peer); }
  void operator()(const plan::Silence& in) const { check_peer(".silence.peer", in.peer); }
  void operator()(const plan::Partition& in) const {
    for (const Address actor : in.with) check_peer(".partition.with", actor);
  }
  void operator()(const plan::Leaves&) const { require_worker("leaves"); }
  void operator()(const plan::Freeze&) const {}
  void operator()(const plan::Slow&) const {}
  void operator()(const plan::SlowLink&) const {}
  void operator()(const plan::ClockStops&) const {}
};

void check_fault(Checks& checks, const Plan& plan, const plan::Fault& fault,
                 const std::string& name) {
  const FaultCheck check{checks, plan, fault, name};
  check.check_actor(".actor", fault.actor);
  std::visit(check, fault.kind);
  checks.require(plan.simulated || !std::visit(NeedsSimulation(), fault.kind), name,
                 ": needs a simulated network; give --simulate, or a fault that a worker of this "
                 "process can have: throws, killed, crash, joins, leaves or freeze");
  checks.require(plan.simulated || fault.actor.kind == RoleKind::worker, name,
                 ".actor: ", fault.actor,
                 " can only fail in a simulation; give a worker, or --simulate");
}

}  // namespace

namespace {

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
  std::set<std::uint32_t> joiners;
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    check_fault(checks, plan, plan.faults[i], concat("faults[", i, "]"));
    if (std::holds_alternative<plan::Joins>(plan.faults[i].kind))
      checks.require(joiners.insert(plan.faults[i].actor.index).second, "faults[", i,
                     "].joins: ", plan.faults[i].actor, " joins twice; give it once");
  }
  checks.require(joiners.size() < plan.workers, "faults: all ", plan.workers,
                 " workers join late; let at least one start with the run");
}

}  // namespace leeway
