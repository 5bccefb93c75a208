#include "blame/wait_follower.hpp"

#include <algorithm>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "monitoring/format.hpp"

namespace leeway::blame {

std::string name_of(const Cause& cause) {
  using Kind = Cause::Kind;
  switch (cause.kind) {
    case Kind::worker:
      return concat("worker ", cause.worker);
    case Kind::stage_before:
      return "stage before";
    case Kind::stage_after:
      return "stage after";
    case Kind::request:
      return "requests";
    case Kind::samples:
      return "samples";
    case Kind::weights:
      return "weights";
    case Kind::other:
      return "requests, samples, weights";
  }
  return "";
}

std::string explain(const Cause& cause, double share) {
  const std::string costs = concat(" costs ", percent(share), " of all time");
  if (cause.kind == Cause::Kind::worker)
    return concat("Worker ", cause.worker, costs,
                  ": others waited for its pushes. A larger --staleness, --balance speed or backup "
                  "workers hide a slow worker.");
  if (cause.kind == Cause::Kind::stage_before || cause.kind == Cause::Kind::stage_after)
    return concat("Waiting for the ", name_of(cause), costs,
                  ". `leeway partition` finds a split with equal stages.");
  return concat("Waiting for ", name_of(cause), costs,
                ", more than for any worker. --prefetch and larger batches hide it.");
}

void WaitFollower::handle(Address actor, Instant now, const Event& event) {
  if (const auto* parked = event.as<event::PullParked>()) {
    if (!has_begun(parked->worker, parked->iteration))
      pulls_[{parked->worker, parked->iteration}].parked[actor] = now;
  } else if (const auto* clock = event.as<event::ClockMoved>()) {
    moved_[{actor, clock->worker}] = Iteration(clock->clock.value() - 1);
  } else if (const auto* removed = event.as<event::Removed>()) {
    moved_[{actor, removed->worker}] = std::nullopt;
  } else if (const auto* released = event.as<event::PullReleased>()) {
    mover_[actor] = {released->mover, moved_[{actor, released->mover}]};
  } else if (const auto* pull = event.as<event::PullAnswered>()) {
    answered(actor, *pull, now);
  } else if (const auto* lease = event.as<event::LeaseGranted>()) {
    leased_[lease->worker] = now;
  } else if (const auto* step = event.as<event::StepStarted>()) {
    started(*step, now);
  } else if (const auto* group = event.as<event::GroupGathered>()) {
    gathered(*group, now);
  } else if (const auto* operation = event.as<event::StageComputed>()) {
    computed(*operation, now);
  } else if (const auto* evicted = event.as<event::Evicted>()) {
    forget(evicted->worker, Iteration(limits::kCountEnd));
    started_.erase(evicted->worker);
  }
}

void WaitFollower::report(const Wait& wait) const {
  if (wait.end > wait.begin) on_wait_(wait);
}

bool WaitFollower::has_begun(WorkerId worker, Iteration iteration) const {
  const auto begun = started_.find(worker);
  return begun != started_.end() && iteration <= begun->second;
}

void WaitFollower::forget(WorkerId worker, Iteration last) {
  pulls_.erase(pulls_.lower_bound({worker, Iteration()}), pulls_.upper_bound({worker, last}));
}

void WaitFollower::answered(Address shard, const event::PullAnswered& pull, Instant now) {
  if (has_begun(pull.worker, pull.iteration)) return;
  Pulls& pulls = pulls_[{pull.worker, pull.iteration}];
  const auto parked = pulls.parked.find(shard);
  const auto mover = mover_.find(shard);
  pulls.answered = now;
  pulls.parked_at.reset();
  pulls.released_by.reset();
  if (parked != pulls.parked.end()) pulls.parked_at = parked->second;
  if (mover != mover_.end()) {
    pulls.released_by = mover->second;
    mover_.erase(mover);
  }
}

void WaitFollower::started(const event::StepStarted& step, Instant now) {
  const WorkerId lead(step.worker.value() - std::min(step.group_index, step.worker.value()));
  std::optional<Pulls> pulls;
  if (auto found = pulls_.extract({step.worker, step.iteration})) pulls = std::move(found.mapped());
  forget(step.worker, step.iteration);
  started_[step.worker] = step.iteration;
  if (pulls) pulls_of_group_[lead] = *pulls;
  const auto of_lead = started_.find(lead);
  if (lead != step.worker && of_lead != started_.end() && of_lead->second == step.iteration)
    pulls = pulls_of_group_[lead];
  Instant at{now.ns - step.waited.ns};
  const auto until = [&](Instant end, const Cause& cause,
                         std::optional<Iteration> iteration = std::nullopt) {
    end = std::clamp(end, std::min(at, now), now);
    report({step.worker.value(), cause, at, end, iteration});
    at = end;
  };
  if (const auto last = gathered_.find(lead); last != gathered_.end() && lead != step.worker)
    until(last->second.at, {Cause::Kind::worker, last->second.last.value()},
          last->second.iteration);
  if (!pulls) return until(now, {Cause::Kind::weights});
  until(std::min(leased_[lead], pulls->parked_at.value_or(pulls->answered)),
        {Cause::Kind::samples});
  if (pulls->parked_at) {
    until(*pulls->parked_at, {Cause::Kind::request});
    // Without another worker, the bound has moved, or the worker's own push was on its way.
    if (pulls->released_by && pulls->released_by->worker != lead)
      until(pulls->answered, {Cause::Kind::worker, pulls->released_by->worker.value()},
            pulls->released_by->iteration);
    else
      until(pulls->answered, {Cause::Kind::request});
  } else {
    until(pulls->answered, {Cause::Kind::request});
  }
  until(now, {Cause::Kind::weights});
}

void WaitFollower::gathered(const event::GroupGathered& group, Instant now) {
  gathered_[group.worker] = {now, group.for_worker, group.iteration};
  report({group.worker.value(),
          {Cause::Kind::worker, group.for_worker.value()},
          {now.ns - group.waited.ns},
          now,
          group.iteration});
}

void WaitFollower::computed(const event::StageComputed& operation, Instant now) {
  Instant at{now.ns - operation.computed.ns - operation.waited.ns};
  const auto add = [&](Duration time, Cause::Kind kind) {
    report({operation.worker.value(), {kind}, at, at + time, {}});
    at = at + time;
  };
  const Duration neighbours = operation.waited_before + operation.waited_after;
  add(operation.waited - neighbours, Cause::Kind::other);
  add(operation.waited_before, Cause::Kind::stage_before);
  add(operation.waited_after, Cause::Kind::stage_after);
}

}  // namespace leeway::blame
