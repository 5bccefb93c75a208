#pragma once
// The link of a node takes longer per byte, in both directions.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class SlowLinkFault final : public Fault {
 public:
  SlowLinkFault(Address actor, plan::SlowLink spec) : actor_(actor), spec_(std::move(spec)) {}
  void begin(Simulator& host) override { host.slow_link(actor_, spec_.factor); }
  Duration lasts() const override { return time_of(spec_.seconds, 1); }
  void end(Simulator& host) override { host.restore_link(actor_, spec_.factor); }

 private:
  const Address actor_;
  const plan::SlowLink spec_;
};

}  // namespace leeway::sim
