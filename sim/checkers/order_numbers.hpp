#pragma once
// OrderNumbers: which messages of a channel (actors/channel.hpp) its receiver takes, by their
// numbers.
#include <cstdint>
#include <map>
#include <utility>

#include "sim/observer.hpp"

namespace leeway::sim {

class OrderNumbers {
 public:
  /// Takes note of a message that is being delivered. False for one that was delivered before, and
  /// for one whose predecessor was lost.
  bool is_next(const Letter& letter) {
    const Envelope* envelope = letter.open();
    if (!envelope || envelope->sequence == 0) return true;
    std::uint64_t& last = last_[{letter.from(), letter.to()}];
    if (envelope->sequence != last + 1) return false;
    ++last;
    return true;
  }

 private:
  std::map<std::pair<Address, Address>, std::uint64_t> last_;  // by sender and receiver
};

}  // namespace leeway::sim
