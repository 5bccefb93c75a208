#include "actors/scheduler/bound_control.hpp"

#include <algorithm>
#include <vector>

#include "checkpoint/store.hpp"

namespace leeway {
namespace {

/// No run counts or takes as much; a message that claims more counts as this much.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 60;

}  // namespace

BoundControl::BoundControl(const Job& job, const Roster& roster, const Mailer& mailer)
    : roster_(roster), mailer_(mailer) {
  const auto low = job.consistency->bound();
  const auto high = job.consistency->largest_bound();
  if (low >= high) return;
  bound_.emplace(low, high, job.consistency->first_bound());
  if (!job.continues_bound()) return;
  const auto& from = job.resumed->manifest.scheduler.bound;
  bound_->resume({from.staleness, from.patience, from.quiet, from.on_trial});
}

checkpoint::Bound BoundControl::state() const {
  if (!bound_) return {};
  const auto& state = bound_->state();
  return {static_cast<std::uint32_t>(state.bound), state.patience, state.quiet, state.on_trial};
}

void BoundControl::measured(WorkerId lead, const msg::WantLease& want, Outbox& out) {
  if (!bound_) return;
  auto& time = interval_[lead];
  time.iterations = std::min(time.iterations + want.iterations, kMostCounted);
  time.waited_us = std::min(time.waited_us + want.waited.ns / 1000, kMostCounted);
  time.computed_us = std::min(time.computed_us + want.computed.ns / 1000, kMostCounted);
  decide(out);
}

void BoundControl::decide(Outbox& out) {
  std::vector<WorkerTime> times;
  Clock largest;
  for (const WorkerId lead : roster_.in({Member::State::running})) {
    const auto time = interval_.find(lead);
    if (time == interval_.end() || time->second.iterations == 0) return;
    times.push_back(time->second);
    largest = std::max(largest, roster_.at(lead).clock);
  }
  interval_.clear();
  const std::int64_t before = bound_->bound();
  const std::int64_t now = bound_->next(times);
  if (now == before) return;
  const auto staleness = static_cast<std::uint32_t>(now);
  mailer_.to_shards(msg::Bound{Iteration(largest.value()), staleness}, out);
  out.send(kMonitor,
           encode({.body = msg::BoundMoved{static_cast<std::uint32_t>(before), staleness,
                                           static_cast<std::uint32_t>(percent_lost(times))}}));
}

}  // namespace leeway
