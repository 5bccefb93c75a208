#pragma once
// Links: the connections between actors, as far as something is wrong with them.
//
// A link is one direction between two actors. A held link keeps what is sent over it until it is
// released, as a network does that sends lost packets again. A severed one loses it, and all that
// was on its way.
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
  /// True until something is wrong for the first time: then nothing else need be asked.
  bool untouched() const { return links_.empty(); }

  /// Holds and severances are counted: as many releases undo them.
  void hold(ActorIndex from, ActorIndex to) { ++at(from, to).holds; }
  /// What was kept, oldest first, when nobody else holds the link.
  std::vector<Letter> release(ActorIndex from, ActorIndex to);
  /// The oldest that was kept; the link stays held. None when nothing is there.
  std::optional<Letter> release_one(ActorIndex from, ActorIndex to);
  void sever(ActorIndex from, ActorIndex to);
  void mend(ActorIndex from, ActorIndex to);
  void delay(ActorIndex from, ActorIndex to, Duration extra) { at(from, to).extra += extra; }

  bool held(ActorIndex from, ActorIndex to) const;
  bool severed(ActorIndex from, ActorIndex to) const;
  Duration extra(ActorIndex from, ActorIndex to) const;
  void keep(ActorIndex from, ActorIndex to, Letter letter);
  /// Counts severances: a message that was sent over another connection is lost.
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

  std::unordered_map<std::uint64_t, Link> links_;  // never walked through
};

}  // namespace leeway::sim
