#pragma once
// IterationSet: iterations that something was done for, as intervals: they come nearly in order, so
// a few suffice for a run of any length.
#include <iterator>
#include <map>

#include "core/ids.hpp"

namespace leeway::sim {

class IterationSet {
 public:
  bool contains(Iteration iteration) const {
    const auto after = ends_.upper_bound(iteration.value());
    return after != ends_.begin() && std::prev(after)->second > iteration.value();
  }

  /// False if it was there already.
  bool insert(Iteration iteration) {
    if (contains(iteration)) return false;
    const std::int64_t value = iteration.value();
    auto next = ends_.upper_bound(value);
    std::int64_t end = value + 1;
    if (next != ends_.end() && next->first == end) {
      end = next->second;
      next = ends_.erase(next);
    }
    if (next != ends_.begin() && std::prev(next)->second == value) {
      std::prev(next)->second = end;
    } else {
      ends_.emplace_hint(next, value, end);
    }
    return true;
  }

  std::size_t intervals() const { return ends_.size(); }

 private:
  std::map<std::int64_t, std::int64_t> ends_;  // [first, second), apart from each other
};

}  // namespace leeway::sim
