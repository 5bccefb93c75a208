#include "sim/checkers/parked.hpp"

#include <limits>

namespace leeway::sim {

void ParkedChecker::look(Address address, WorkerId worker, Iteration iteration,
                         std::int64_t own_clock) {
  const auto& shard = clocks_->at(address);
  const auto* entry = shard.live(worker);
  const std::int64_t bound = bounds_->at(address, iteration);
  if (!entry || clocks_->common_clock(address, worker) < own_clock ||
      (bound != kUnbounded && iteration.value() - shard.min_clock > bound))
    return;
  violated({address, address_of(worker)}, "the pull of iteration ", iteration,
           " may go on, and is left waiting: min_clock ", shard.min_clock, ", clock ", entry->clock,
           ", own_clock ", own_clock);
}

/// A shard answers in the handler that moved a clock, so what may go on now was left behind.
void ParkedChecker::look(Address address, Shard& shard) {
  const std::int64_t min_clock = clocks_->at(address).min_clock;
  const std::uint64_t changes = bounds_->changes();
  if (min_clock != shard.min_clock || changes != shard.bounds) {
    for (const auto& [name, own_clock] : shard.open)
      look(address, std::get<WorkerId>(name), std::get<Iteration>(name), own_clock);
  } else {
    for (const WorkerId worker : shard.moved)
      for (auto pull = shard.open.lower_bound({worker, Iteration(), Incarnation()});
           pull != shard.open.end() && std::get<WorkerId>(pull->first) == worker; ++pull)
        look(address, worker, std::get<Iteration>(pull->first), pull->second);
  }
  shard.min_clock = min_clock;
  shard.bounds = changes;
  shard.moved.clear();
}

void ParkedChecker::close(Shard& shard, WorkerId worker, Iteration iteration) {
  // A refusal of the pull that has just come says nothing about one of another life.
  if (shard.latest && std::get<WorkerId>(*shard.latest) == worker &&
      std::get<Iteration>(*shard.latest) == iteration) {
    shard.open.erase(*shard.latest);
    shard.latest.reset();
    return;
  }
  const auto first = shard.open.lower_bound({worker, iteration, Incarnation()});
  const auto last = shard.open.upper_bound(
      {worker, iteration, Incarnation(std::numeric_limits<std::uint32_t>::max())});
  shard.open.erase(first, last);
}

void ParkedChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard) return;
  switch (event.kind) {
    case Event::Kind::pull_answered:
    case Event::Kind::refused:
      return close(shards_[actor], event.worker, event.iteration);
    case Event::Kind::malformed: {
      auto& shard = shards_[actor];
      if (shard.latest) shard.open.erase(*shard.latest);
      return;
    }
    case Event::Kind::clock_moved:
    case Event::Kind::admitted:
    case Event::Kind::removed: {
      auto& moved = shards_[actor].moved;
      moved.insert(event.worker);
      for (const WorkerId waits : clocks_->awaited(actor, event.worker)) moved.insert(waits);
      return;
    }
    default:
      return;
  }
}

void ParkedChecker::on_delivered(Instant, const Letter& letter) {
  const bool from_worker = letter.from().kind == RoleKind::worker;
  if (letter.to().kind == RoleKind::shard) {
    auto& shard = shards_[letter.to()];
    if (!shard.moved.empty() || shard.latest || bounds_->changes() != shard.bounds) {
      if (shard.latest) shard.moved.insert(std::get<WorkerId>(*shard.latest));
      look(letter.to(), shard);
      shard.latest.reset();
    }
    const auto* pull = from_worker ? letter.as<msg::Pull>() : nullptr;
    if (!pull) return;
    shard.latest = {WorkerId(letter.from().index), pull->iteration, letter.open()->incarnation};
    shard.open[*shard.latest] = pull->own_clock.value();
  } else if (letter.to() == kScheduler && from_worker) {
    const WorkerId worker(letter.from().index);
    if (letter.as<msg::Join>()) forget(worker, letter.open()->incarnation);
    if (letter.as<msg::Stopped>()) ended_.insert(letter.from());
  }
}

void ParkedChecker::forget(WorkerId worker, Incarnation incarnation) {
  for (auto& [address, shard] : shards_) {
    auto pull = shard.open.lower_bound({worker, Iteration(), Incarnation()});
    while (pull != shard.open.end() && std::get<WorkerId>(pull->first) == worker)
      pull = std::get<Incarnation>(pull->first) < incarnation ? shard.open.erase(pull)
                                                              : std::next(pull);
  }
}

void ParkedChecker::on_run_ended(const RunTotals& totals) {
  if (totals.end.reason == msg::RunEnded::Reason::failed) return;
  for (const auto& [address, shard] : shards_)
    for (const auto& [name, own_clock] : shard.open)
      if (!ended_.contains(address_of(std::get<WorkerId>(name))))
        violated({address, address_of(std::get<WorkerId>(name))}, "the pull of iteration ",
                 std::get<Iteration>(name), " was left waiting at the end");
}

}  // namespace leeway::sim
