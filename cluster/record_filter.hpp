#pragma once
// RecordFilter: drops the events that a standby repeats when it takes over (see
// Outbox::emit_numbered).
#include <cstdint>
#include <map>
#include <mutex>

#include "core/address.hpp"

namespace leeway {

/// Thread-safe.
class RecordFilter {
 public:
  /// False for a record that was seen, or one before it. Number 0: not numbered.
  bool is_new(Address actor, std::uint64_t number) {
    if (number == 0) return true;
    std::lock_guard lock(mutex_);
    std::uint64_t& last = last_[actor];
    if (number <= last) return false;
    last = number;
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<Address, std::uint64_t> last_;
};

}  // namespace leeway
