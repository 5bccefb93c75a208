#pragma once
// The actor ends at once, and may restart later.
#include "plan/fault_queries.hpp"
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class CrashFault final : public Fault {
 public:
  CrashFault(Address actor, plan::Crash spec, StartAgain again)
      : actor_(actor), spec_(spec), again_(std::move(again)) {}
  void begin(Simulator& host) override {
    ended_ = host.lives(actor_);
    host.kill(actor_, plan::reason_of(spec_));
  }
  Duration lasts() const override { return time_of(spec_.back, 1); }
  void end(Simulator& host) override {
    if (ended_) again_(host, actor_);  // only an actor that this fault has ended
  }

 private:
  const Address actor_;
  const plan::Crash spec_;
  const StartAgain again_;
  bool ended_ = false;
};

}  // namespace leeway::sim
