#pragma once
// Trace: what happened in a simulated run, as numbers that two runs can be compared by.
#include <cstdint>
#include <vector>

#include "actors/outbox.hpp"

namespace leeway::sim {

/// Two hashes: of the protocol - who was told what, and when - which is the same on every
/// processor; and of all contents, losses and weights included, which is the same for one binary
/// and one instruction set.
class Trace {
 public:
  /// With `keep`, remembers the hashes after each step, so that the first difference is found.
  explicit Trace(bool keep) : keep_(keep) {}

  void delivered(Instant at, Address from, Address to, const Message& message);
  void timer(Instant at, Address actor, TimerToken token);
  void computed(Instant at, Address actor, int part);
  void down(Instant at, Address watcher, Address actor);
  void event(Instant at, Address actor, const Event& event);

  std::uint64_t protocol() const { return protocol_; }
  std::uint64_t numeric() const { return numeric_; }
  std::uint64_t steps() const { return steps_; }
  struct Step {
    std::uint64_t protocol, numeric;
    bool operator==(const Step&) const = default;
  };
  const std::vector<Step>& kept() const { return kept_; }

 private:
  void step(std::uint64_t what, Instant at, Address a, Address b, std::uint64_t detail,
            std::uint64_t contents);

  bool keep_;
  std::uint64_t protocol_ = 0, numeric_ = 0, steps_ = 0;
  std::vector<Step> kept_;
};

}  // namespace leeway::sim
