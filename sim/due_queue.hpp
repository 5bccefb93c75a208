#pragma once
// DueQueue: slot numbers ordered by due time, and by insertion if times are equal.
#include <array>
#include <cstdint>
#include <vector>

#include "core/check.hpp"
#include "core/time.hpp"

namespace leeway::sim {

/// A heap in which the four children of an entry share one cache line.
class DueQueue {
 public:
  /// Slot numbers are below this.
  static constexpr std::uint64_t kMaxSlots = std::uint64_t{1} << 24;

  bool empty() const { return size_ == 0; }
  Instant next_at() const { return at(kRoot).at; }
  std::uint32_t next_slot() const { return slot_of(at(kRoot)); }

  void push(Instant when, std::uint32_t slot) {
    LW_CHECK(slot < kMaxSlots, slot);
    const std::size_t last = kRoot + size_++;
    if (last / 4 >= lines_.size()) lines_.emplace_back();
    rise(last, {when, next_order_++ * kMaxSlots + slot});
  }

  /// Removes the next slot. Requires that the queue is not empty.
  void pop() {
    const Entry moved = at(kRoot + --size_);
    const std::size_t end = kRoot + size_;
    std::size_t hole = kRoot;
    for (std::size_t child = first_child(hole); child < end; child = first_child(hole)) {
      // Prefetches all grandchildren, because the next level to read depends on this comparison.
      if (const std::size_t next = first_child(child); next + 12 < end)
        for (std::size_t line = 0; line < 4; ++line)
          __builtin_prefetch(&lines_[next / 4 + line], 1);
      std::size_t least = child;
      for (std::size_t other = child + 1; other < child + 4 && other < end; ++other)
        if (at(other) < at(least)) least = other;
      at(hole) = at(least);
      hole = least;
    }
    if (size_ > 0) rise(hole, moved);
  }

 private:
  struct Entry {
    Instant at;
    std::uint64_t order_and_slot = 0;
    bool operator<(const Entry& other) const {
      return at != other.at ? at < other.at : order_and_slot < other.order_and_slot;
    }
  };
  struct alignas(64) Line {
    std::array<Entry, 4> entries;
  };
  static constexpr std::size_t kRoot = 3;  // aligns children to cache lines
  static std::size_t first_child(std::size_t parent) { return 4 * (parent - 2); }
  static std::size_t parent_of(std::size_t child) { return child / 4 + 2; }
  static std::uint32_t slot_of(const Entry& entry) {
    return static_cast<std::uint32_t>(entry.order_and_slot % kMaxSlots);
  }
  const Entry& at(std::size_t index) const { return lines_[index / 4].entries[index % 4]; }
  Entry& at(std::size_t index) { return lines_[index / 4].entries[index % 4]; }

  void rise(std::size_t hole, const Entry& entry) {
    while (hole > kRoot && entry < at(parent_of(hole))) {
      at(hole) = at(parent_of(hole));
      hole = parent_of(hole);
    }
    at(hole) = entry;
  }

  std::vector<Line> lines_;
  std::size_t size_ = 0;
  std::uint64_t next_order_ = 0;  // reaching 2^40 would take weeks
};

}  // namespace leeway::sim
