#pragma once
// The actor receives all messages later for a while.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class SlowFault final : public Fault {
 public:
  SlowFault(Address actor, plan::Slow spec) : actor_(actor), spec_(std::move(spec)) {}
  void begin(Simulator& host) override { add(host, time_of(spec_.delay_ms, 1e3)); }
  Duration lasts() const override { return time_of(spec_.seconds, 1); }
  void end(Simulator& host) override { add(host, Duration{} - time_of(spec_.delay_ms, 1e3)); }

 private:
  void add(Simulator& host, Duration extra) const {
    for (const Address other : host.addresses())
      if (other != actor_) host.delay(other, actor_, extra);
  }

  const Address actor_;
  const plan::Slow spec_;
};

}  // namespace leeway::sim
