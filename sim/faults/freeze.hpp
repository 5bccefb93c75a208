#pragma once
// The actor does nothing for a while, like a stopped process. Its watchers take it for dead after
// the detection time.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class FreezeFault final : public Fault {
 public:
  FreezeFault(Address actor, plan::Freeze spec) : actor_(actor), spec_(std::move(spec)) {}
  void begin(Simulator& host) override { host.freeze(actor_); }
  Duration lasts() const override { return time_of(spec_.seconds, 1); }
  void end(Simulator& host) override { host.thaw(actor_); }

 private:
  const Address actor_;
  const plan::Freeze spec_;
};

}  // namespace leeway::sim
