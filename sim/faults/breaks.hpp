#pragma once
// A connection breaks and is re-established later. Messages in flight are lost; the protocol
// repeats those that matter.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class BreaksFault final : public Fault {
 public:
  BreaksFault(Address actor, plan::Breaks spec) : actor_(actor), spec_(std::move(spec)) {}
  void begin(Simulator& host) override { host.sever(actor_, spec_.peer); }
  Duration lasts() const override { return time_of(spec_.seconds, 1); }
  void end(Simulator& host) override { host.mend(actor_, spec_.peer); }

 private:
  const Address actor_;
  const plan::Breaks spec_;
};

}  // namespace leeway::sim
