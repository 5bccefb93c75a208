#pragma once
// The worker is asked to leave: it finishes its iteration and stops.
#include "messages/envelope.hpp"
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class LeavesFault final : public Fault {
 public:
  explicit LeavesFault(Address actor) : worker_(actor.index) {}
  void begin(Simulator& host) override {
    host.send(kScheduler, encode({.body = msg::Leave{worker_}}));
  }

 private:
  const WorkerId worker_;
};

}  // namespace leeway::sim
