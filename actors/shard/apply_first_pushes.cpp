#include "actors/shard/apply_first_pushes.hpp"

#include <algorithm>
#include <utility>

#include "core/mutant.hpp"
#include "messages/envelope.hpp"

namespace leeway {

bool ApplyFirstPushes::Closing::is_contributor(WorkerId worker) const {
  return std::binary_search(contributors.begin(), contributors.end(), worker);
}

std::optional<WorkerId> ApplyFirstPushes::take(Contribution push, Outbox& out) {
  const WorkerId worker = push.worker;
  const bool whole = clocks_.is_whole(worker, push.iteration), empty = push.is_empty();
  held_.add(std::move(push));
  if (!whole) return std::nullopt;
  whole_.push_back({worker, empty});
  if (leads_ && opened_ && !empty) grace_.arrived(out.now() - *opened_);
  if (closing_) closing_->missing.erase(worker);
  const auto mover = apply_closed(out);
  if (!mover) propose(out);
  return mover;
}

void ApplyFirstPushes::propose(Outbox& out) {
  if (!leads_ || closing_ || whole_.empty()) return;
  std::size_t empty = 0;
  std::vector<WorkerId> contributors;
  for (const WholePush& push : whole_) {
    contributors.push_back(push.worker);
    empty += push.empty ? 1 : 0;
  }
  if (!is_enough(empty) || wait_for_more(out)) return;
  // The scheduler may refuse a short round that lacks pushes: it hears of each further one.
  const Iteration round(clocks_.min_clock().value());
  const Proposal proposal{round, clocks_.view(), contributors.size()};
  if (proposal == proposed_) return;
  proposed_ = proposal;
  std::sort(contributors.begin(), contributors.end());
  scheduler_.send(msg::RoundClosed{round, std::move(contributors), proposal.view}, out);
}

void ApplyFirstPushes::on_timer(Outbox& out) {
  timer_.reset();  // a timer that still runs fires without need
  propose(out);
}

void ApplyFirstPushes::end_grace(Outbox& out) {
  grace_ended_ = true;
  propose(out);
}

std::size_t ApplyFirstPushes::missing() const {
  return clocks_.at_min_clock() - std::min(clocks_.at_min_clock(), whole_.size());
}

bool ApplyFirstPushes::wait_for_more(Outbox& out) {
  if (grace_ended_ || missing() == 0) return false;
  const Iteration round(clocks_.min_clock().value());
  if (gathering_.round != round) gathering_ = {round, out.now()};
  const Instant quorum_at = gathering_.quorum_at;
  const auto end = grace_.end(opened_.value_or(quorum_at), quorum_at);
  if (!end) return true;
  if (*end <= out.now()) return false;
  if (!timer_ || *end < *timer_) {
    timer_ = *end;
    out.after(*end - out.now(), token_);
  }
  return true;
}

/// A worker without samples in the round reports that by an empty push. Of the others, enough must
/// have pushed.
bool ApplyFirstPushes::is_enough(std::size_t empty) const {
  const std::size_t live = clocks_.at_min_clock();
  const std::size_t with_samples = live - std::min(live, empty);
  if (with_samples == 0) return true;
  const std::size_t enough =
      size_.of(with_samples) - (planted(Mutant::round_closed_too_early) ? 1 : 0);
  return whole_.size() - empty >= enough;
}

bool ApplyFirstPushes::close(const msg::CloseRound& order) {
  const auto is_known = [&](WorkerId worker) { return clocks_.find(worker) != nullptr; };
  if (closing_ || order.round.value() != clocks_.min_clock().value() ||
      !std::all_of(order.contributors.begin(), order.contributors.end(), is_known))
    return false;
  closing_ = Closing{order.round, order.contributors, {}, order.scale};
  for (const WorkerId worker : order.contributors)
    if (!clocks_.is_whole(worker, order.round)) closing_->missing.insert(worker);
  return true;
}

std::optional<WorkerId> ApplyFirstPushes::apply_closed(Outbox& out) {
  if (!closing_ || !closing_->missing.empty()) return std::nullopt;
  const Closing closed = *std::exchange(closing_, std::nullopt);
  if (leads_)
    for (std::size_t missed = missing(); missed > 0; --missed) grace_.missed();
  // The contributor that completed the round.
  WorkerId last = closed.contributors.empty() ? WorkerId() : closed.contributors.front();
  for (const WholePush& push : std::exchange(whole_, {}))
    if (closed.is_contributor(push.worker)) last = push.worker;
  auto held = held_.take(closed.round);
  advance_clocks(closed, out);
  opened_ = out.now();
  std::vector<Contribution> applied;
  for (auto& push : held) {
    if (closed.is_contributor(push.worker) || planted(Mutant::dropped_push_applied)) {
      push.weight *= closed.scale;
      applied.push_back(std::move(push));
    } else {
      sink_.drop(push, out);
    }
  }
  apply_round(closed.round, std::move(applied), sink_, out);
  return last;
}

void ApplyFirstPushes::advance_clocks(const Closing& closed, Outbox& out) {
  std::vector<WorkerId> in_round;
  for (const auto& [worker, participant] : clocks_.participants())
    if (participant.live && participant.clock.value() == closed.round.value())
      in_round.push_back(worker);
  for (const WorkerId worker : in_round) {
    clocks_.advance(worker);
    if (closed.is_contributor(worker))
      clocks_.contributed(worker, closed.round);
    else
      out.emit(event::PushDropped{
          .worker = worker, .session = clocks_.find(worker)->session, .iteration = closed.round});
    out.emit(event::ClockMoved{worker, Clock(closed.round.value() + 1)});
  }
}

msg::RoundState ApplyFirstPushes::save() const {
  msg::RoundState state{.held = held_.save(), .whole = whole_};
  if (closing_)
    state.closing = {true,
                     closing_->round,
                     closing_->contributors,
                     {closing_->missing.begin(), closing_->missing.end()},
                     closing_->scale};
  state.proposed = {proposed_.round + 1, proposed_.view,
                    static_cast<std::uint32_t>(proposed_.contributors)};
  state.gathering = {.opened = opened_ ? opened_->ns : -1,
                     .gathered = gathering_.round + 1,
                     .quorum_at = gathering_.quorum_at.ns,
                     .timer = timer_ ? timer_->ns : -1,
                     .grace_ended = grace_ended_};
  for (const Duration one : grace_.arrivals()) state.gathering.arrivals.push_back(one.ns);
  return state;
}

void ApplyFirstPushes::restore(const msg::RoundState& state) {
  held_.restore(state.held);
  whole_ = state.whole;
  closing_.reset();
  const auto& [closed, round, contributors, missing, scale] = state.closing;
  if (closed) closing_ = Closing{round, contributors, {missing.begin(), missing.end()}, scale};
  proposed_ = {Iteration(state.proposed.beyond.value() - 1), state.proposed.view,
               state.proposed.contributors};
  const auto instant = [](std::int64_t ns) {
    return ns < 0 ? std::nullopt : std::optional(Instant{ns});
  };
  const auto& gathering = state.gathering;
  opened_ = instant(gathering.opened);
  gathering_ = {Iteration(gathering.gathered.value() - 1), Instant{gathering.quorum_at}};
  timer_ = instant(gathering.timer);
  grace_ended_ = gathering.grace_ended;
  std::vector<Duration> arrivals;
  for (const std::int64_t one : gathering.arrivals) arrivals.push_back(Duration{one});
  grace_.restore(std::move(arrivals));
}

ApplyPolicy::Progress ApplyFirstPushes::fence(WorkerId worker) {
  return {settle(worker), {}};
}

/// Drops the worker's held pushes, except a whole one of a closed round. Returns the number of its
/// iterations that are finished, applied or dropped.
Clock ApplyFirstPushes::settle(WorkerId worker) {
  const auto& participant = *clocks_.find(worker);
  const Clock clock = participant.clock;
  bool dropped = false;
  if (closing_ && participant.live && clock.value() == closing_->round.value()) {
    dropped = !closing_->is_contributor(worker);
    if (!dropped && closing_->missing.erase(worker) == 0) return clock + 1;
    if (!dropped) std::erase(closing_->contributors, worker);
  }
  if (std::erase_if(whole_, [&](const WholePush& push) { return push.worker == worker; }) > 0)
    gathering_ = {};  // the round may lack its quorum now
  held_.forget(worker, Iteration(clock.value()), sink_);
  return dropped ? clock + 1 : clock;
}

}  // namespace leeway
