// The shard's side of rounds that are closed early (docs/staleness.md, "Rounds that do not wait").
//
// Pushes of the open round, which is that at min_clock, are held. Shard 0, the lead, sees when they
// suffice and says so to the scheduler, which tells all shards in one order with what it says of
// the membership: so all agree whose pushes a round is made of, and whom a fence came too late for.
#include <algorithm>

#include "actors/shard/shard.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"

namespace leeway {

void Shard::handle(const msg::CloseRound& close, Outbox& out) {
  if (stale(close.view, out)) return;
  const bool open = job_->consistency->drops_stragglers() && !closing_ &&
                    close.round.value() == clocks_.min_clock().value() &&
                    std::all_of(close.contributors.begin(), close.contributors.end(),
                                [&](WorkerId worker) { return clocks_.find(worker); });
  if (!open)
    return refuse_malformed(kScheduler, close.round,
                            concat("close round: ", close.round, " is not open here"), out);
  closing_ = Closing{close.round, close.contributors, {}};
  for (const WorkerId worker : close.contributors)
    if (!clocks_.whole(worker, close.round)) closing_->missing.insert(worker);
  apply_closed_round(out);
}

/// Lead: proposes to close the open round when enough of it is here. Of the workers that may still
/// have samples in it, all but the spare ones must have pushed; who has none says so by an empty
/// push.
void Shard::propose_round(Outbox& out) {
  if (id_ != ShardId(0) || !job_->consistency->drops_stragglers() || closing_) return;
  const Iteration round(clocks_.min_clock().value());
  if (whole_.empty()) return;
  const std::size_t live = clocks_.at_min_clock();
  std::size_t empty = 0;
  std::vector<WorkerId> contributors;
  for (const auto& push : whole_) {
    contributors.push_back(push.worker);
    empty += push.empty ? 1 : 0;
  }
  const std::size_t with_samples = live - std::min(live, empty);
  const std::size_t enough = job_->consistency->contributors(with_samples) -
                             (planted(Mutant::round_closed_too_early) ? 1 : 0);
  if (with_samples > 0 && contributors.size() - empty < enough) return;
  // The scheduler may find that too few of a short round are there: it gets to know of each more.
  if (proposed_.round == round && proposed_.view == view_ &&
      proposed_.contributors == contributors.size())
    return;
  proposed_ = {round, view_, contributors.size()};
  std::sort(contributors.begin(), contributors.end());
  out.send(kScheduler, encode({.body = msg::RoundClosed{round, std::move(contributors), view_}}));
}

void Shard::apply_closed_round(Outbox& out) {
  if (!closing_ || !closing_->missing.empty()) return;
  const Iteration round = closing_->round;
  const auto contributors = std::move(closing_->contributors);
  const auto contributes = [&](WorkerId worker) {
    return std::binary_search(contributors.begin(), contributors.end(), worker);
  };
  // Who waits for the round was let through by the last that it needed.
  WorkerId last;
  for (const auto& push : whole_)
    if (contributes(push.worker)) last = push.worker;
  auto held = std::move(rounds_[round]);
  rounds_.erase(round);
  whole_.clear();
  closing_.reset();
  std::vector<WorkerId> standing;
  for (const auto& [worker, participant] : clocks_.participants())
    if (participant.live && participant.clock.value() == round.value()) standing.push_back(worker);
  for (const WorkerId worker : standing) {
    clocks_.close(worker);
    if (!contributes(worker))
      out.emit({.kind = Event::Kind::push_dropped,
                .worker = worker,
                .iteration = round,
                .incarnation = clocks_.find(worker)->incarnation});
    out.emit({.kind = Event::Kind::clock_moved, .worker = worker, .value = round.value() + 1});
  }
  std::vector<Contribution> taken;
  for (auto& contribution : held) {
    if (contributes(contribution.worker) || planted(Mutant::dropped_push_applied))
      taken.push_back(std::move(contribution));
    else
      drop(contribution, out);
  }
  apply_round(std::move(taken), out);
  clocks_changed(last, out);
}

/// A part that will not be applied: its worker may forget it.
void Shard::drop(const Contribution& contribution, Outbox& out) {
  forget_unapplied(contribution);
  acknowledge(contribution, true, out);
}

/// What is held of a worker that has been fenced, or leaves, goes, unless it belongs to a closed
/// round and is whole. Returns how many iterations are done with: all shards have been told of the
/// same closed rounds, so they differ only where one lacks a push that a closed round counts on.
Clock Shard::settle(const ClockTable::Participant& participant, WorkerId worker) {
  const Clock clock = participant.clock;
  const bool closing = closing_ && participant.live && clock.value() == closing_->round.value();
  bool late = false;
  if (closing) {
    auto& contributors = closing_->contributors;
    const auto named = std::find(contributors.begin(), contributors.end(), worker);
    late = named == contributors.end();
    if (!late && closing_->missing.erase(worker) == 0) return clock + 1;
    if (!late) contributors.erase(named);
  }
  std::erase_if(whole_, [&](const WholePush& push) { return push.worker == worker; });
  drop_unfinished(worker, Iteration(clock.value()));
  return late ? clock + 1 : clock;
}

}  // namespace leeway
