#pragma once
// The actor does nothing for a while, as if its process had been stopped. Whoever watches it takes
// it for dead when that is longer than the detection.
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
