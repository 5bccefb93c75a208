#include "sim/faults/catalogue.hpp"

#include "sim/faults/breaks.hpp"
#include "sim/faults/clock_stops.hpp"
#include "sim/faults/crash.hpp"
#include "sim/faults/delay.hpp"
#include "sim/faults/freeze.hpp"
#include "sim/faults/joins.hpp"
#include "sim/faults/leaves.hpp"
#include "sim/faults/partition.hpp"
#include "sim/faults/silence.hpp"
#include "sim/faults/slow.hpp"
#include "sim/faults/slow_link.hpp"

namespace leeway::sim {

namespace {

struct Make {
  using Made = std::unique_ptr<Fault>;
  Address actor;
  const StartAgain& again;

  Made operator()(const plan::Throws&) const { return nullptr; }
  Made operator()(const plan::Killed&) const { return nullptr; }
  Made operator()(const plan::Crash& in) const {
    return std::make_unique<CrashFault>(actor, in, again);
  }
  Made operator()(const plan::Joins&) const { return std::make_unique<JoinsFault>(actor, again); }
  Made operator()(const plan::Leaves&) const { return std::make_unique<LeavesFault>(actor); }
  Made operator()(const plan::Freeze& in) const { return std::make_unique<FreezeFault>(actor, in); }
  Made operator()(const plan::Slow& in) const { return std::make_unique<SlowFault>(actor, in); }
  Made operator()(const plan::Breaks& in) const { return std::make_unique<BreaksFault>(actor, in); }
  Made operator()(const plan::Delay& in) const { return std::make_unique<DelayFault>(actor, in); }
  Made operator()(const plan::Silence& in) const {
    return std::make_unique<SilenceFault>(actor, in);
  }
  Made operator()(const plan::Partition& in) const {
    return std::make_unique<PartitionFault>(actor, in);
  }
  Made operator()(const plan::SlowLink& in) const {
    return std::make_unique<SlowLinkFault>(actor, in);
  }
  Made operator()(const plan::ClockStops& in) const {
    return std::make_unique<ClockStopsFault>(actor, in);
  }
  // Only of simulated clusters, which have faults of their own.
  Made operator()(const plan::Competes&) const { return nullptr; }
};

}  // namespace

std::unique_ptr<Fault> make_fault(const plan::Fault& spec, const StartAgain& again) {
  return std::visit(Make{spec.actor, again}, spec.kind);
}

}  // namespace leeway::sim
