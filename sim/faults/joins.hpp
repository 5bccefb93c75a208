#pragma once
// The worker starts now and was absent before.
#include "sim/faults/fault.hpp"

namespace leeway::sim {

class JoinsFault final : public Fault {
 public:
  JoinsFault(Address actor, StartAgain start) : actor_(actor), start_(std::move(start)) {}
  void begin(Simulator& host) override {
    if (!host.lives(actor_)) start_(host, actor_);
  }

 private:
  const Address actor_;
  const StartAgain start_;
};

}  // namespace leeway::sim
