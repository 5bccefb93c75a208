#pragma once
// Messages between two actors take longer for a while, in both directions.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class DelayFault final : public Fault {
 public:
  DelayFault(Address actor, plan::Delay spec) : actor_(actor), spec_(std::move(spec)) {}
  void begin(Simulator& host) override { add(host, time_of(spec_.delay_ms, 1e3)); }
  Duration lasts() const override { return time_of(spec_.seconds, 1); }
  void end(Simulator& host) override { add(host, Duration{} - time_of(spec_.delay_ms, 1e3)); }

 private:
  void add(Simulator& host, Duration extra) const {
    host.delay(actor_, spec_.peer, extra);
    host.delay(spec_.peer, actor_, extra);
  }

  const Address actor_;
  const plan::Delay spec_;
};

}  // namespace leeway::sim
