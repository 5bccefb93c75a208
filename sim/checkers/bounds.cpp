#include "sim/checkers/bounds.hpp"

#include <algorithm>

namespace leeway::sim {

std::int64_t BoundChecker::at(Address address, Iteration iteration) {
  if (!moves_) return first_;
  const auto& bounds = shards_[address].bounds;
  const auto next = bounds.upper_bound(iteration);
  return next == bounds.begin() ? first_ : std::prev(next)->second;
}

void BoundChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard || !moves_) return;
  if (event.as<event::Malformed>()) shards_[actor].announced.reset();
  if (const auto* answered = event.as<event::PullAnswered>()) {
    Iteration& beyond = shards_[actor].beyond;
    beyond = std::max(beyond, answered->iteration + 1);
  }
  if (const auto* changed = event.as<event::BoundChanged>()) check_change(actor, *changed);
}

void BoundChecker::check_change(Address actor, const event::BoundChanged& changed) {
  Shard& shard = shards_[actor];
  const Iteration from = changed.iteration;
  const std::int64_t bound = changed.staleness;
  if (bound < job_->consistency->bound() || bound > job_->consistency->largest_bound())
    violated({actor}, "the bound became ", bound, ", which is out of its range");
  if (shard.announced != changed.staleness)
    violated({actor}, "the bound became ", bound, ", which the scheduler did not announce");
  if (from < shard.beyond)
    violated({actor}, "the bound of iteration ", from, " became ", bound,
             ", although the shard had answered pulls up to iteration ", shard.beyond.value() - 1);
  if (from > shard.beyond && at(actor, shard.beyond) < bound)
    violated({actor}, "the bound of iteration ", shard.beyond, " stayed at ",
             at(actor, shard.beyond), " when it could be raised to ", bound);
  shard.announced.reset();
  ++changes_;
  shard.bounds.erase(shard.bounds.lower_bound(from), shard.bounds.end());
  shard.bounds[from] = bound;
  // No pull of an iteration below all clocks is parked.
  const auto passed = shard.bounds.upper_bound(Iteration(clocks_->at(actor).min_clock));
  if (passed != shard.bounds.begin()) shard.bounds.erase(shard.bounds.begin(), std::prev(passed));
}

void BoundChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.to().kind != RoleKind::shard || !moves_) return;
  Shard& shard = shards_[letter.to()];
  if (shard.announced)
    violated({letter.to()}, "the announced bound ", *shard.announced, " was ignored");
  if (letter.from() != kScheduler || !orders_.is_next(letter)) return;
  if (const auto* bound = letter.as<msg::Bound>()) shard.announced = bound->staleness;
}

}  // namespace leeway::sim
