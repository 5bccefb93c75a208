#pragma once
// BoundTable: the staleness bound of each iteration at one shard, if the scheduler moves the bound.
//
// A worker whose pull for an iteration was answered must be able to push that iteration. So the
// bound of an iteration stays as it is once a pull for it has been answered.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"
#include "messages/shard_state.hpp"

namespace leeway {

class BoundTable {
 public:
  /// `initial` holds for all iterations until another bound is announced.
  explicit BoundTable(std::int64_t initial) : entries_{{Iteration(), initial}} {}

  std::int64_t of(Iteration iteration) const;
  /// A pull for the iteration is answered.
  void answered(Iteration iteration) {
    unanswered_ = iteration < unanswered_ ? unanswered_ : iteration + 1;
  }
  /// Applies an announcement. A rise holds at once for all iterations beyond the answered ones, a
  /// fall from `from` on: afterwards no such iteration has a bound below `bound`, and none from
  /// `from` on has one above it. Returns the first iteration whose bound is `bound`. Bounds never
  /// rise from one of these iterations to the next.
  Iteration announce(Iteration from, std::int64_t bound);
  /// Discards the bounds of iterations below `least`.
  void forget_below(Clock least);

  msg::BoundTableState save() const;
  void restore(const msg::BoundTableState& state);

  std::size_t size() const { return entries_.size(); }

 private:
  using Entry = msg::BoundTableState::Entry;  // from an iteration up to the next entry
  std::vector<Entry> entries_;                // by `from`; never empty
  Iteration unanswered_;  // the first beyond all answered and all forgotten iterations
};

}  // namespace leeway
