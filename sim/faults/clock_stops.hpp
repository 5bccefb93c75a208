#pragma once
// The clock of a node stops for a while: no timer fires, and measured durations are 0.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class ClockStopsFault final : public Fault {
 public:
  ClockStopsFault(Address actor, plan::ClockStops spec) : actor_(actor), spec_(std::move(spec)) {}
  void begin(Simulator& host) override { host.stop_clock(actor_); }
  Duration lasts() const override { return time_of(spec_.seconds, 1); }
  void end(Simulator& host) override { host.start_clock(actor_); }

 private:
  const Address actor_;
  const plan::ClockStops spec_;
};

}  // namespace leeway::sim
