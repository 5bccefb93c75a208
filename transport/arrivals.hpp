#pragma once
// Arrivals: messages that have arrived on both lanes, in the order of delivery.
//
// The lanes overtake each other. A message waits here for earlier ones from the same actor to the
// same actor. Thread-safe.
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "transport/letter.hpp"

namespace leeway::transport {

class Arrivals {
 public:
  /// False: the message is known already, or too many wait.
  bool add(Arrival arrival);
  /// Removes the next message of the pair; nothing if it has not arrived.
  std::optional<Arrival> take(Address from, Address to);
  /// Number of messages that take() has returned.
  std::uint64_t taken() const;

 private:
  struct Queue {
    std::uint64_t next = 0;
    std::map<std::uint64_t, Arrival> by_order;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<Address, Address>, Queue> queues_;
  std::uint64_t held_bytes_ = 0;  // of letters
  std::uint64_t taken_ = 0;
};

}  // namespace leeway::transport
