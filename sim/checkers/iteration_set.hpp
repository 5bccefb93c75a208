#pragma once
// IterationSet: a set of iterations, stored as intervals. Iterations arrive nearly in order, so a
// few intervals suffice for a run of any length.
#include <algorithm>
#include <iterator>
#include <vector>

#include "core/ids.hpp"

namespace leeway::sim {

class IterationSet {
 public:
  bool contains(Iteration iteration) const {
    const auto after = first_beyond(iteration.value());
    return after != intervals_.begin() && std::prev(after)->end > iteration.value();
  }

  /// False if the set already has the iteration.
  bool insert(Iteration iteration) {
    const std::int64_t value = iteration.value();
    const auto next = intervals_.begin() + (first_beyond(value) - intervals_.cbegin());
    const bool has_before = next != intervals_.begin();
    if (has_before && std::prev(next)->end > value) return false;
    const bool joins_before = has_before && std::prev(next)->end == value;
    const bool joins_next = next != intervals_.end() && next->begin == value + 1;
    if (joins_before && joins_next) {
      std::prev(next)->end = next->end;
      intervals_.erase(next);
    } else if (joins_before) {
      ++std::prev(next)->end;
    } else if (joins_next) {
      --next->begin;
    } else {
      intervals_.insert(next, {value, value + 1});
    }
    return true;
  }

  std::size_t intervals() const { return intervals_.size(); }

 private:
  struct Interval {
    std::int64_t begin, end;
  };
  std::vector<Interval>::const_iterator first_beyond(std::int64_t value) const {
    if (intervals_.empty() || intervals_.back().begin <= value) return intervals_.end();
    return std::upper_bound(
        intervals_.begin(), intervals_.end(), value,
        [](std::int64_t one, const Interval& other) { return one < other.begin; });
  }

  std::vector<Interval> intervals_;  // sorted, neither overlapping nor adjacent
};

}  // namespace leeway::sim
