#pragma once
// The actor's messages do not reach the peer for a while; those of the peer reach the actor.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class SilenceFault final : public Fault {
 public:
  SilenceFault(Address actor, plan::Silence spec) : actor_(actor), spec_(std::move(spec)) {}
  void begin(Simulator& host) override { host.hold(actor_, spec_.peer); }
  Duration lasts() const override { return time_of(spec_.seconds, 1); }
  void end(Simulator& host) override { host.release(actor_, spec_.peer); }

 private:
  const Address actor_;
  const plan::Silence spec_;
};

}  // namespace leeway::sim
