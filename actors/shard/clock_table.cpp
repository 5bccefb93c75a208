#include "actors/shard/clock_table.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"

namespace leeway {

bool ClockTable::enter_view(View view) {
  if (view < view_) return false;
  view_ = view;
  return true;
}

msg::ClockTableState ClockTable::save() const {
  msg::ClockTableState state{view_, min_clock_, max_clock_, max_clock_gap_, {}};
  for (const auto& [worker, entry] : participants_) {
    auto& saved = state.participants.emplace_back();
    saved.worker = worker;
    saved.session = entry.session;
    saved.live = entry.live;
    saved.fenced = entry.fenced;
    saved.clock = entry.clock;
    saved.buckets = static_cast<std::uint32_t>(entry.accepted.size());
    for (std::uint32_t bucket = 0; bucket < saved.buckets; ++bucket)
      if (entry.accepted[bucket]) saved.accepted.push_back(bucket);
    saved.next_unseen = entry.next_unseen;
    saved.contributed = entry.contributed;
  }
  return state;
}

void ClockTable::restore(const msg::ClockTableState& state) {
  view_ = state.view;
  participants_.clear();
  by_index_.clear();
  live_at_.clear();
  fenced_.clear();
  for (const auto& saved : state.participants) {
    Participant& entry = entry_of(saved.worker);
    entry = {.session = saved.session,
             .live = saved.live,
             .fenced = saved.fenced,
             .clock = saved.clock,
             .accepted = std::vector<bool>(saved.buckets),
             .buckets_accepted = static_cast<std::uint32_t>(saved.accepted.size()),
             .next_unseen = saved.next_unseen,
             .contributed = saved.contributed};
    for (const std::uint32_t bucket : saved.accepted) entry.accepted.at(bucket) = true;
    if (entry.live) ++live_at_[entry.clock];
    if (entry.live && entry.fenced) fenced_.insert(saved.worker);
  }
  min_clock_ = state.min_clock;
  max_clock_ = state.max_clock;
  max_clock_gap_ = state.max_clock_gap;
}

ClockTable::Participant& ClockTable::entry_of(WorkerId worker) {
  auto& entry = participants_[worker];
  if (by_index_.size() <= worker.value()) by_index_.resize(worker.value() + std::size_t{1});
  by_index_[worker.value()] = &entry;
  return entry;
}

Clock ClockTable::admit(WorkerId worker, Session session, Iteration iteration) {
  auto& entry = entry_of(worker);
  Clock at = std::max({Clock(iteration.value()), min_clock_, entry.clock});
  if (planted(Mutant::admitted_behind)) at = std::max(Clock(iteration.value()), entry.clock);
  const bool was_live = entry.live;
  entry = Participant{session, was_live, false, entry.clock, {}, 0, {}, {}};
  fenced_.erase(worker);
  set(entry, at, true);
  return at;
}

void ClockTable::raise(WorkerId worker, Iteration iteration) {
  const auto found = participants_.find(worker);
  if (found == participants_.end() || !found->second.live) return;
  auto& entry = found->second;
  LW_CHECK(entry.buckets_accepted == 0, worker, iteration);
  set(entry, std::max(entry.clock, Clock(iteration.value())), true);
}

void ClockTable::fence(WorkerId worker) {
  const auto found = participants_.find(worker);
  if (found == participants_.end()) return;
  found->second.fenced = !planted(Mutant::fence_forgotten);
  if (found->second.live) fenced_.insert(worker);
}

void ClockTable::remove(WorkerId worker) {
  const auto found = participants_.find(worker);
  if (found == participants_.end()) return;
  fenced_.erase(worker);
  set(found->second, found->second.clock, false);
}

ClockTable::Verdict ClockTable::accept(WorkerId worker, Iteration iteration, std::uint32_t bucket,
                                       std::uint32_t bucket_count) {
  LW_CHECK(find(worker), worker);
  auto& entry = *by_index_[worker.value()];
  LW_CHECK(bucket < bucket_count, bucket, bucket_count);
  if (iteration.value() < entry.clock.value())
    return planted(Mutant::repeat_applied) ? Verdict::accepted : Verdict::repeat;
  if (iteration.value() > entry.clock.value()) return Verdict::gap;
  if (entry.accepted.size() != bucket_count) {
    LW_CHECK(entry.buckets_accepted == 0, bucket_count, entry.accepted.size());
    entry.accepted.assign(bucket_count, false);
  }
  if (entry.accepted[bucket]) return Verdict::repeat;
  entry.accepted[bucket] = true;
  ++entry.buckets_accepted;
  entry.next_unseen = std::max(entry.next_unseen, iteration + 1);
  return Verdict::accepted;
}

bool ClockTable::is_whole(WorkerId worker, Iteration iteration) const {
  const auto& entry = participants_.at(worker);
  return entry.clock.value() > iteration.value() || is_whole(entry);
}

void ClockTable::advance(WorkerId worker) {
  auto& entry = *by_index_.at(worker.value());
  entry.accepted.clear();
  entry.buckets_accepted = 0;
  set(entry, entry.clock + (planted(Mutant::clock_counted_twice) ? 2 : 1), entry.live);
  if (entry.live) max_clock_gap_ = std::max(max_clock_gap_, entry.clock - min_clock_);
}

bool ClockTable::advance_if_whole(WorkerId worker) {
  if (!is_whole(*find(worker))) return false;
  advance(worker);
  return true;
}

void ClockTable::contributed(WorkerId worker, Iteration round) {
  auto& rounds = by_index_.at(worker.value())->contributed;
  if (rounds.size() == limits::kKeptContributions) rounds.erase(rounds.begin());
  rounds.push_back(round);
}

bool ClockTable::has_contributed(WorkerId worker, Iteration round) const {
  return std::ranges::find(participants_.at(worker).contributed, round) !=
         participants_.at(worker).contributed.end();
}

std::size_t ClockTable::at_min_clock() const {
  const auto here = live_at_.find(min_clock_);
  if (here == live_at_.end()) return 0;
  const auto fenced = std::count_if(fenced_.begin(), fenced_.end(), [&](WorkerId worker) {
    return participants_.at(worker).clock == min_clock_;
  });
  return here->second - static_cast<std::size_t>(fenced);
}

bool ClockTable::may_push(WorkerId worker, Session session) const {
  const auto* entry = find(worker);
  if (planted(Mutant::old_session_accepted) && entry) session = entry->session;
  return entry && entry->live && !entry->fenced && entry->session == session;
}

const ClockTable::Participant* ClockTable::find(WorkerId worker) const {
  return worker.value() < by_index_.size() ? by_index_[worker.value()] : nullptr;
}

void ClockTable::set(Participant& participant, Clock clock, bool live) {
  if (participant.live) {
    const auto left = live_at_.find(participant.clock);
    if (--left->second == 0) live_at_.erase(left);
  }
  participant.clock = clock;
  participant.live = live;
  if (live) ++live_at_[clock];
  if (live_at_.empty()) return;
  const Clock least = live_at_.begin()->first, largest = live_at_.rbegin()->first;
  LW_CHECK(least >= min_clock_, least, min_clock_);
  min_clock_ = least;
  max_clock_ = std::max(max_clock_, largest);
}

}  // namespace leeway
