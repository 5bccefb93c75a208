#pragma once
// BoundTable: the staleness bound of each iteration at one shard, where the scheduler moves it.
//
// A worker that was let into an iteration must be able to push it, so the bound of an iteration
// that the shard has let somebody into never changes: what is announced holds for later ones alone.
#include <cstdint>
#include <vector>

#include "core/ids.hpp"

namespace leeway {

class BoundTable {
 public:
  /// The bound of all iterations until another is announced.
  explicit BoundTable(std::int64_t initial) : entries_{{Iteration(), initial}} {}

  std::int64_t of(Iteration iteration) const;
  /// Somebody is let into the iteration.
  void answered(Iteration iteration) {
    unanswered_ = iteration < unanswered_ ? unanswered_ : iteration + 1;
  }
  /// Takes in an announcement. Beyond the iterations that were answered, no bound is below `bound`
  /// from now on, as nobody is to wait longer than need be, and from `from` on none is above it.
  /// Returns from which iteration on it is `bound`. So bounds never rise beyond what was answered,
  /// and whoever may be let into an iteration may be let into all before it.
  Iteration announce(Iteration from, std::int64_t bound);
  /// Forgets bounds that only iterations below `least` had: nobody waits for those.
  void forget_below(Clock least);

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Iteration from;  // and up to the next entry
    std::int64_t bound;
  };
  std::vector<Entry> entries_;  // by `from`; never empty
  Iteration unanswered_;        // first iteration beyond all that were answered, or are forgotten
};

}  // namespace leeway
