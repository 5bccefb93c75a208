#include "sim/checkers/bounds.hpp"

#include <algorithm>

namespace leeway::sim {

std::int64_t BoundChecker::at(Address address, Iteration iteration) {
  if (!moves_) return job_->consistency->bound(iteration);
  const auto& bounds = shards_[address].bounds;
  const auto next = bounds.upper_bound(iteration);
  return next == bounds.begin() ? job_->consistency->bound(iteration) : std::prev(next)->second;
}

void BoundChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard || !moves_) return;
  if (event.kind == Event::Kind::malformed) shards_[actor].told.reset();
  if (event.kind == Event::Kind::pull_answered)
    shards_[actor].beyond = std::max(shards_[actor].beyond, event.iteration + 1);
  if (event.kind != Event::Kind::bound_changed) return;
  Shard& shard = shards_[actor];
  const Iteration from = event.iteration;
  if (event.value < job_->consistency->bound(from) ||
      event.value > job_->consistency->largest_bound())
    violated({actor}, "the bound became ", event.value, ", which is out of its range");
  if (shard.told != static_cast<std::uint32_t>(event.value))
    violated({actor}, "the bound became ", event.value, ", which the scheduler did not announce");
  if (from < shard.beyond)
    violated({actor}, "the bound of iteration ", from, " became ", event.value,
             ", and somebody had been let into ", shard.beyond.value() - 1);
  if (from > shard.beyond && at(actor, shard.beyond) < event.value)
    violated({actor}, "the bound of iteration ", shard.beyond, " stayed at ",
             at(actor, shard.beyond), " when it could be raised to ", event.value);
  shard.told.reset();
  ++changes_;
  shard.bounds.erase(shard.bounds.lower_bound(from), shard.bounds.end());
  shard.bounds[from] = event.value;
  // Nobody is held up in iterations below all clocks.
  const auto held = shard.bounds.upper_bound(Iteration(clocks_->at(actor).min_clock));
  if (held != shard.bounds.begin()) shard.bounds.erase(shard.bounds.begin(), std::prev(held));
}

void BoundChecker::on_delivered(Instant, const Letter& letter) {
  if (letter.to().kind != RoleKind::shard || !moves_) return;
  Shard& shard = shards_[letter.to()];
  if (shard.told) violated({letter.to()}, "a bound of ", *shard.told, " was not taken in");
  if (letter.from() != kScheduler) return;
  if (const auto* bound = letter.as<msg::Bound>()) shard.told = bound->staleness;
}

}  // namespace leeway::sim
