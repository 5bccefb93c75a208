#include "sim/checkers/parked.hpp"

#include <limits>

namespace leeway::sim {

void ParkedChecker::check(Address address, WorkerId worker, Iteration iteration,
                          std::int64_t own_clock) {
  const auto& shard = clocks_->at(address);
  const auto* entry = shard.live(worker);
  const std::int64_t bound = bounds_->at(address, iteration);
  if (!entry || clocks_->common_clock(address, worker) < own_clock ||
      (bound != kUnbounded && iteration.value() - shard.min_clock > bound))
    return;
  violated({address, address_of(worker)}, "the pull of iteration ", iteration,
           " is allowed, but still parked: min_clock ", shard.min_clock, ", clock ", entry->clock,
           ", own_clock ", own_clock);
}

/// A shard answers in the handler that moved a clock, so an allowed pull that is still open now was
/// forgotten.
void ParkedChecker::check(Address address, Shard& shard) {
  const std::int64_t min_clock = clocks_->at(address).min_clock;
  const std::uint64_t changes = bounds_->changes();
  if (min_clock != shard.min_clock || changes != shard.bounds) {
    for (const auto& [name, own_clock] : shard.open)
      check(address, std::get<WorkerId>(name), std::get<Iteration>(name), own_clock);
  } else {
    for (const WorkerId worker : shard.moved)
      for (auto pull = shard.open.lower_bound({worker, Iteration(), Session()});
           pull != shard.open.end() && std::get<WorkerId>(pull->first) == worker; ++pull)
        check(address, worker, std::get<Iteration>(pull->first), pull->second);
  }
  shard.min_clock = min_clock;
  shard.bounds = changes;
  shard.moved.clear();
}

void ParkedChecker::close(Shard& shard, WorkerId worker, Iteration iteration) {
  // The refusal of the latest pull does not concern a pull of another session.
  if (shard.latest && std::get<WorkerId>(*shard.latest) == worker &&
      std::get<Iteration>(*shard.latest) == iteration) {
    shard.open.erase(*shard.latest);
    shard.latest.reset();
    return;
  }
  const auto first = shard.open.lower_bound({worker, iteration, Session()});
  const auto last = shard.open.upper_bound(
      {worker, iteration, Session(std::numeric_limits<std::uint64_t>::max())});
  shard.open.erase(first, last);
}

void ParkedChecker::on_event(Instant, Address actor, const Event& event) {
  if (actor.kind != RoleKind::shard) return;
  if (const auto* answered = event.as<event::PullAnswered>()) {
    close(shards_[actor], answered->worker, answered->iteration);
  } else if (const auto* refused = event.as<event::Refused>()) {
    close(shards_[actor], refused->worker, refused->iteration);
  } else if (event.as<event::Malformed>()) {
    Shard& shard = shards_[actor];
    if (shard.latest) shard.open.erase(*shard.latest);
  } else if (const auto* moved = event.as<event::ClockMoved>()) {
    note_move(actor, moved->worker);
  } else if (const auto* admitted = event.as<event::Admitted>()) {
    note_move(actor, admitted->worker);
  } else if (const auto* removed = event.as<event::Removed>()) {
    // An idle pipeline may have open pulls, for weights that its last iteration did not read.
    forget(shards_[actor], removed->worker);
    note_move(actor, removed->worker);
  }
}

void ParkedChecker::note_move(Address actor, WorkerId worker) {
  auto& moved = shards_[actor].moved;
  moved.insert(worker);
  for (const WorkerId waiting : clocks_->awaited(actor, worker)) moved.insert(waiting);
}

void ParkedChecker::on_delivered(Instant, const Letter& letter) {
  const bool from_worker = letter.from().kind == RoleKind::worker;
  if (letter.to().kind == RoleKind::shard) {
    auto& shard = shards_[letter.to()];
    if (!shard.moved.empty() || shard.latest || bounds_->changes() != shard.bounds) {
      if (shard.latest) shard.moved.insert(std::get<WorkerId>(*shard.latest));
      check(letter.to(), shard);
      shard.latest.reset();
    }
    const auto* pull = from_worker ? letter.as<msg::Pull>() : nullptr;
    if (!pull) return;
    shard.latest = {WorkerId(letter.from().index), pull->iteration, letter.open()->session};
    shard.open[*shard.latest] = pull->own_clock.value();
  } else if (letter.to() == kScheduler && from_worker) {
    const WorkerId worker(letter.from().index);
    const auto* join = letter.as<msg::Join>();
    if (join && join->nonce > joined_[worker]) {
      joined_[worker] = join->nonce;
      for (auto& [address, shard] : shards_) forget(shard, worker);
    }
    if (letter.as<msg::Stopped>()) ended_.insert(letter.from());
  }
}

void ParkedChecker::forget(Shard& shard, WorkerId worker) {
  std::erase_if(shard.open,
                [&](const auto& pull) { return std::get<WorkerId>(pull.first) == worker; });
}

void ParkedChecker::on_run_ended(const RunTotals& totals) {
  if (totals.end.reason == msg::RunEnded::Reason::failed) return;
  for (const auto& [address, shard] : shards_)
    for (const auto& [name, own_clock] : shard.open)
      if (!ended_.contains(address_of(std::get<WorkerId>(name))))
        violated({address, address_of(std::get<WorkerId>(name))}, "the pull of iteration ",
                 std::get<Iteration>(name), " was still parked at the end");
}

}  // namespace leeway::sim
