#include "actors/shard/bound_table.hpp"

#include <algorithm>

#include "core/mutant.hpp"

namespace leeway {

std::int64_t BoundTable::of(Iteration iteration) const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if (entry->from <= iteration) return entry->bound;
  return entries_.front().bound;
}

msg::BoundTableState BoundTable::save() const {
  return {entries_, unanswered_};
}

void BoundTable::restore(const msg::BoundTableState& state) {
  if (!state.entries.empty()) entries_ = state.entries;
  unanswered_ = state.unanswered;
}

Iteration BoundTable::announce(Iteration from, std::int64_t bound) {
  if (!planted(Mutant::bound_falls_behind)) from = std::max(from, unanswered_);
  while (entries_.size() > 1 && entries_.back().from >= from) entries_.pop_back();
  // Bounds never rise from here on, so the entries that are not above the new bound come last.
  for (; entries_.back().bound <= bound && from > unanswered_; entries_.pop_back()) {
    from = std::max(entries_.back().from, unanswered_);
    if (entries_.back().from <= unanswered_) break;
  }
  if (entries_.back().from == from) {
    entries_.back().bound = bound;
  } else if (entries_.back().bound != bound) {
    entries_.push_back({from, bound});
  }
  return from;
}

void BoundTable::forget_below(Clock least) {
  const auto kept = std::find_if(entries_.begin() + 1, entries_.end(), [&](const Entry& entry) {
    return entry.from.value() > least.value();
  });
  entries_.erase(entries_.begin(), kept - 1);
  unanswered_ = std::max(unanswered_, Iteration(least.value()));
}

}  // namespace leeway
