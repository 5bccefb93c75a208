#pragma once
// OrderNumbers: which of the scheduler's orders a shard has to carry out, by their numbers.
#include <cstdint>
#include <map>

#include "sim/observer.hpp"

namespace leeway::sim {

class OrderNumbers {
 public:
  /// Takes note of a message from the scheduler to a shard that is being delivered. False for an
  /// order that the shard has received before, and for one whose predecessor was lost.
  bool is_next(const Letter& letter) {
    const Envelope* envelope = letter.open();
    if (!envelope || envelope->sequence == 0) return true;
    std::uint64_t& last = last_[letter.to()];
    if (envelope->sequence != last + 1) return false;
    ++last;
    return true;
  }

 private:
  std::map<Address, std::uint64_t> last_;  // by shard
};

}  // namespace leeway::sim
