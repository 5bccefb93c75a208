#pragma once
// Trace: hashes of all steps of a simulated run, by which two runs can be compared.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/outbox.hpp"

namespace leeway::sim {

/// There are two hashes. The protocol hash covers senders, receivers, lengths and times of
/// messages, and events; it is the same on every processor. The numeric hash also covers all
/// contents, with losses and weights; it is the same for one binary and one instruction set.
class Trace {
 public:
  struct Options {
    /// Keeps the hashes after each step, so that the first difference can be found. Only then are
    /// contents of messages hashed.
    bool keep = false;
    /// The step that description() puts into words, counted from 0.
    std::optional<std::uint64_t> describe_step;
  };
  explicit Trace(Options options) : options_(options) {}

  void delivered(Instant at, Address from, Address to, const Message& message);
  void timer(Instant at, Address actor, TimerToken token);
  void computed(Instant at, Address actor, int part);
  void down(Instant at, Address watcher, Address actor);
  void linked(Instant at, Address actor, Address peer);
  void event(Instant at, Address actor, const Event& event);

  std::uint64_t protocol() const { return protocol_; }
  std::uint64_t numeric() const { return numeric_; }
  std::uint64_t steps() const { return steps_; }
  struct Step {
    std::uint64_t protocol, numeric;
    bool operator==(const Step&) const = default;
  };
  const std::vector<Step>& kept() const { return kept_; }
  /// The step of Options::describe_step in words; empty if the run ended before it.
  const std::string& description() const { return description_; }

 private:
  void step(std::uint64_t what, Instant at, Address a, Address b, std::uint64_t detail,
            std::uint64_t contents);
  bool describes() const { return options_.describe_step == steps_; }

  Options options_;
  std::uint64_t protocol_ = 0, numeric_ = 0, steps_ = 0;
  std::vector<Step> kept_;
  std::string description_;
};

}  // namespace leeway::sim
