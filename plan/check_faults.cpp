// What validate() requires of stragglers, faults and the world.
#include <cmath>
#include <set>

#include "core/limits.hpp"
#include "plan/checks.hpp"

namespace leeway {
namespace {

struct StragglerCheck {
  Checks& checks;
  const std::string name;  // "stragglers[2]"

  void factor(const char* field, double value) const {
    checks.number(name + field, value, value >= 1 && value <= plan::kMaxSlowdown,
                  "a factor from 1 to 1000000, as in --slow 3:4x");
  }
  void iterations(const char* field, std::uint32_t value) const {
    checks.require(value >= 1, name, field, ": 0 is not allowed; give 1 or more iterations");
  }
  void operator()(const plan::ConstantFactor& in) const { factor(".factor", in.factor); }
  void operator()(const plan::Bursts& in) const {
    factor(".bursts.factor", in.factor);
    checks.number(name + ".bursts.share", in.share, in.share >= 0 && in.share <= 1,
                  "0 to 1, or 0% to 100% as in --slow 3:4x@20%");
    iterations(".bursts.length", in.length);
  }
  void operator()(const plan::Pareto& in) const {
    checks.number(name + ".pareto.alpha", in.alpha, in.alpha >= 0.1 && in.alpha <= 100,
                  "0.1 (very heavy) to 100 (hardly any tail), as in --slow 3:pareto(1.5)");
    factor(".pareto.cap", in.cap);
  }
  void operator()(const plan::Pauses& in) const {
    constexpr double kHourMs = 3.6e6, kDaySeconds = 86400;
    checks.number(name + ".pauses.length_ms", in.length_ms,
                  in.length_ms > 0 && in.length_ms <= kHourMs,
                  "more than 0, up to an hour, as in --slow 3:pauses(200ms/50)");
    if (const auto* every = std::get_if<std::uint32_t>(&in.every))
      return iterations(".pauses.iterations", *every);
    const double seconds = std::get<double>(in.every);
    checks.number(name + ".pauses.seconds", seconds, seconds > 0 && seconds <= kDaySeconds,
                  "more than 0, up to a day, as in --slow 3:pauses(200ms/2s)");
    checks.require(in.length_ms < seconds * 1e3, name, ".pauses.length_ms: a pause of ",
                   in.length_ms, " ms every ", seconds,
                   " s leaves no time to work; give shorter or rarer pauses");
  }
  void operator()(const plan::Decay& in) const {
    factor(".decay.factor", in.factor);
    iterations(".decay.iterations", in.iterations);
  }
  void operator()(const plan::Sharing& in) const {
    factor(".sharing.factor", in.factor);
    iterations(".sharing.on", in.on);
    iterations(".sharing.off", in.off);
  }
  void operator()(const plan::Trace& in) const {
    checks.require(!in.file.empty(), name, ".trace.file: is empty; give the path of the file");
  }
};

constexpr double kDaySeconds = 86400;
constexpr std::int64_t kMaxIteration = std::int64_t{1} << 40;

/// Faults that a host on threads can cause; the others take a simulated network.
bool takes_simulation(const plan::FaultKind& kind) {
  return std::holds_alternative<plan::Slow>(kind) || std::holds_alternative<plan::Breaks>(kind) ||
         std::holds_alternative<plan::Delay>(kind) || std::holds_alternative<plan::Silence>(kind) ||
         std::holds_alternative<plan::Partition>(kind) ||
         std::holds_alternative<plan::SlowLink>(kind) ||
         std::holds_alternative<plan::ClockStops>(kind);
}

struct FaultCheck {
  Checks& checks;
  const Plan& plan;
  const plan::Fault& fault;
  const std::string name;  // "faults[2]"

  void exists(const char* field, Address actor) const {
    const bool worker = actor.kind == RoleKind::worker;
    const std::uint32_t count = worker ? plan.workers : plan.shards;
    const bool known =
        actor == kScheduler || ((worker || actor.kind == RoleKind::shard) && actor.index < count);
    checks.require(known, name, field, ": there is no ", actor, "; give worker0 to worker",
                   std::int64_t{plan.workers} - 1, ", shard0 to shard",
                   std::int64_t{plan.shards} - 1, " or scheduler");
  }
  void worker_alone(const char* kind) const {
    checks.require(fault.actor.kind == RoleKind::worker, name, ".", kind, ": ", fault.actor,
                   " cannot be lost and come back; give a worker");
  }
  void lasts(const char* field, double seconds) const {
    checks.number(name + field, seconds, seconds > 0 && seconds <= kDaySeconds,
                  "seconds above 0, up to a day");
  }
  void peer(const char* field, Address other) const {
    exists(field, other);
    checks.require(other != fault.actor, name, field, ": ", other,
                   " is the actor itself; give another one");
  }
  void at_iteration(const char* kind) const {
    checks.require(std::holds_alternative<std::int64_t>(fault.at), name, ".", kind,
                   ": happens within an iteration; give at.iteration, as in --fault 2:", kind,
                   "@100");
  }

  void operator()(const plan::Throws&) const {
    worker_alone("throws");
    at_iteration("throws");
  }
  void operator()(const plan::Killed&) const {
    worker_alone("killed");
    at_iteration("killed");
  }
  void operator()(const plan::Crash& in) const {
    checks.require(fault.actor.kind == RoleKind::worker || in.back == 0, name,
                   ".crash.back: ", fault.actor, " cannot come back; only workers can");
    checks.number(name + ".crash.back", in.back, in.back >= 0 && in.back <= kDaySeconds,
                  "seconds up to a day, or 0 for never");
  }
  void operator()(const plan::Joins&) const {
    worker_alone("joins");
    checks.require(std::holds_alternative<double>(fault.at), name,
                   ".joins: a worker that is not there has no iterations; give at.seconds, as in "
                   "--fault 2:joins@3s");
  }
  void operator()(const plan::Freeze& in) const { lasts(".freeze.seconds", in.seconds); }
  void operator()(const plan::Slow& in) const {
    checks.number(name + ".slow.delay_ms", in.delay_ms, in.delay_ms > 0 && in.delay_ms <= 3.6e6,
                  "more than 0, up to an hour");
    lasts(".slow.seconds", in.seconds);
  }
  void operator()(const plan::Breaks& in) const {
    peer(".breaks.peer", in.peer);
    lasts(".breaks.seconds", in.seconds);
    const bool worker = fault.actor.kind == RoleKind::worker || in.peer.kind == RoleKind::worker;
    checks.require(worker, name, ".breaks: a link between ", fault.actor, " and ", in.peer,
                   " that breaks ends the run; give one of a worker");
  }
  void operator()(const plan::Delay& in) const {
    peer(".delay.peer", in.peer);
    checks.number(name + ".delay.delay_ms", in.delay_ms, in.delay_ms > 0 && in.delay_ms <= 3.6e6,
                  "more than 0, up to an hour");
    lasts(".delay.seconds", in.seconds);
  }
  void operator()(const plan::Silence& in) const {
    peer(".silence.peer", in.peer);
    lasts(".silence.seconds", in.seconds);
  }
  void operator()(const plan::Partition& in) const {
    for (const Address actor : in.with) peer(".partition.with", actor);
    lasts(".partition.seconds", in.seconds);
  }
  void operator()(const plan::SlowLink& in) const {
    checks.number(name + ".slow_link.factor", in.factor, in.factor >= 1 && in.factor <= 1e6,
                  "a factor from 1 to 1000000");
    lasts(".slow_link.seconds", in.seconds);
  }
  void operator()(const plan::ClockStops& in) const { lasts(".clock_stops.seconds", in.seconds); }
  void operator()(const plan::Leaves&) const { worker_alone("leaves"); }
};

void check_fault(Checks& checks, const Plan& plan, const plan::Fault& fault,
                 const std::string& name) {
  const FaultCheck check{checks, plan, fault, name};
  check.exists(".actor", fault.actor);
  if (const auto* iteration = std::get_if<std::int64_t>(&fault.at)) {
    checks.require(*iteration >= 0 && *iteration < kMaxIteration, name,
                   ".at.iteration: ", *iteration, " is not allowed; give 0 or more");
  } else {
    const double seconds = std::get<double>(fault.at);
    checks.number(name + ".at.seconds", seconds, seconds >= 0 && seconds <= 365 * kDaySeconds,
                  "0 or more, up to a year");
  }
  checks.number(name + ".spread", fault.spread, fault.spread >= 0 && fault.spread <= 1e9,
                "0 or more");
  std::visit(check, fault.kind);
  checks.require(plan.simulated || !takes_simulation(fault.kind), name,
                 ": takes a simulated network; give --simulate, or a fault that a worker of this "
                 "process can have: throws, killed, crash, joins, leaves or freeze");
  checks.require(plan.simulated || fault.actor.kind == RoleKind::worker, name,
                 ".actor: ", fault.actor,
                 " fails in a simulation alone; give a worker, or --simulate");
}

}  // namespace

void check_world(Checks& checks, const std::string& where, const plan::World& in) {
  const auto number = [&](const char* key, double value, bool satisfied, const char* wanted) {
    checks.number(concat(where, key), value, satisfied, wanted);
  };
  checks.range(concat(where, "cores"), in.cores, 1, 4096, "");
  number("speed", in.speed, in.speed >= 1e-9 && in.speed <= 1e9, "GFLOP/s of a core, above 0");
  number("memory", in.memory, in.memory >= 1e-9 && in.memory <= 1e9, "GB/s of a core, above 0");
  number("noise", in.noise, in.noise >= 0 && in.noise < 1, "a share below 1, such as 0.05");
  number("jitter", in.jitter, in.jitter >= 0 && in.jitter <= 100,
         "a share of the latency, such as 0.2");
  number("link", in.link, in.link == 0 || (in.link >= 1e-6 && in.link <= 1e9),
         "Gbit/s, or 0 for no limit");
  number("contention", in.contention, in.contention >= 0 && in.contention <= 100,
         "a share of the time, such as 0.1");
  number("cold", in.cold, in.cold >= 0 && in.cold <= 100, "a share of the time, such as 0.3");
  constexpr double kMostUs = 1e8;  // 100 seconds
  const auto time = [&](const char* key, double value) {
    number(key, value, value >= 0 && value <= kMostUs, "microseconds, 0 or more");
  };
  time("latency_us", in.latency_us);
  time("local_latency_us", in.local_latency_us);
  time("message_us", in.message_us);
  time("timer_us", in.timer_us);
  time("slice_us", in.slice_us);
  number("detection_ms", in.detection_ms, in.detection_ms >= 0 && in.detection_ms <= kMostUs / 1e3,
         "milliseconds, 0 or more");
}

void check_trouble(Checks& checks, const Plan& plan) {
  for (std::size_t i = 0; i < plan.stragglers.size(); ++i) {
    const plan::Straggler& it = plan.stragglers[i];
    const std::string name = concat("stragglers[", i, "]");
    checks.require(it.worker < plan.workers, name, ".worker: there is no worker ", it.worker,
                   "; give --slow a worker from 0 to ", std::int64_t{plan.workers} - 1,
                   ", or more --workers");
    checks.require(!it.all || it.worker == 0, name, ".worker: ", it.worker,
                   " is given, and all = true as well; keep one of the two");
    std::visit(StragglerCheck{checks, name}, it.kind);
  }
  checks.require(plan.faults.size() <= limits::kMaxWorkers, "faults: ", plan.faults.size(),
                 " are too many; give at most ", limits::kMaxWorkers);
  std::set<std::uint32_t> late;
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    check_fault(checks, plan, plan.faults[i], concat("faults[", i, "]"));
    if (std::holds_alternative<plan::Joins>(plan.faults[i].kind))
      checks.require(late.insert(plan.faults[i].actor.index).second, "faults[", i,
                     "].joins: ", plan.faults[i].actor, " joins twice; give it once");
  }
  checks.require(late.size() < plan.workers, "faults: all ", plan.workers,
                 " workers join late; leave one that is there from the beginning");
  if (plan.simulated) check_world(checks, "host.simulated.", *plan.simulated);
}

}  // namespace leeway
