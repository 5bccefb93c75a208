#pragma once
// Links: the faults of connections between actors.
//
// A link is one direction between two actors. A held link keeps messages until it is released, like
// a network that retransmits lost packets. A severed link loses new messages and those in flight.
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.hpp"
#include "sim/network.hpp"
#include "sim/observer.hpp"

namespace leeway::sim {

class Links {
 public:
  /// True until the first fault. Until then callers can skip all other queries.
  bool untouched() const { return links_.empty(); }

  /// Holds nest: each needs its own release(). So do sever() and mend().
  void hold(ActorIndex from, ActorIndex to) { ++at(from, to).holds; }
  /// Returns the kept messages, oldest first; empty while another hold remains.
  std::vector<Letter> release(ActorIndex from, ActorIndex to);
  /// Returns the oldest kept message, if any. The link stays held.
  std::optional<Letter> release_one(ActorIndex from, ActorIndex to);
  void sever(ActorIndex from, ActorIndex to);
  void mend(ActorIndex from, ActorIndex to);
  void delay(ActorIndex from, ActorIndex to, Duration extra) { at(from, to).extra += extra; }

  bool held(ActorIndex from, ActorIndex to) const;
  bool severed(ActorIndex from, ActorIndex to) const;
  Duration extra(ActorIndex from, ActorIndex to) const;
  void keep(ActorIndex from, ActorIndex to, Letter letter);
  /// Number of times that the link was severed. A message sent under another number is lost.
  std::uint32_t connection(ActorIndex from, ActorIndex to) const;

 private:
  struct Link {
    std::uint32_t holds = 0, severed = 0, connection = 0;
    Duration extra;
    std::vector<Letter> kept;
  };
  Link& at(ActorIndex from, ActorIndex to) { return links_[key(from, to)]; }
  const Link* find(ActorIndex from, ActorIndex to) const;
  static std::uint64_t key(ActorIndex from, ActorIndex to) {
    return std::uint64_t{from} << 32 | to;
  }

  std::unordered_map<std::uint64_t, Link> links_;  // never iterated over
};

}  // namespace leeway::sim
