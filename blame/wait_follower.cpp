#include "blame/wait_follower.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "blame/event_lines.hpp"
#include "core/text.hpp"

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

void WaitFollower::handle(const nlohmann::json& event) {
  const std::string& name = event.at("event").get_ref<const std::string&>();
  const auto worker_of = [&] { return event.at("worker").get<std::size_t>(); };
  const double now = event.at("ns").get<double>() * kSecondsPerNs;
  if (name == "pull_parked") {
    active(worker_of(), now);
    pulls_[{worker_of(), event.at("iteration").get<std::int64_t>()}].parked[event.at("actor")] =
        now;
  } else if (name == "pull_released") {
    mover_[event.at("actor")] = event.at("mover").get<std::size_t>();
  } else if (name == "pull_answered") {
    answered(event, now);
  } else if (name == "lease_granted") {
    active(worker_of(), now).leased = now;
  } else if (name == "admitted") {
    workers_[worker_of()].is_starting = true;
  } else if (name == "step_finished") {
    workers_[worker_of()].idle_since = now;
  } else if (name == "evicted") {
    workers_[worker_of()] = {};
  } else if (name == "step_started") {
    started(worker_of(), event.at("iteration").get<std::int64_t>(), now);
  }
}

WaitFollower::WorkerState& WaitFollower::active(std::size_t worker, double now) {
  WorkerState& state = workers_[worker];
  if (std::exchange(state.is_starting, false)) state.idle_since = now;
  return state;
}

void WaitFollower::answered(const nlohmann::json& event, double now) {
  const auto worker = event.at("worker").get<std::size_t>();
  active(worker, now);
  Pulls& pulls = pulls_[{worker, event.at("iteration").get<std::int64_t>()}];
  const std::string& shard = event.at("actor").get_ref<const std::string&>();
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

void WaitFollower::started(std::size_t worker, std::int64_t iteration, double now) {
  WorkerState& state = workers_[worker];
  const auto pulls = pulls_.extract({worker, iteration});
  const auto idle_since = std::exchange(state.idle_since, std::nullopt);
  if (!idle_since || *idle_since > now) return;
  double at = *idle_since;
  const auto until = [&](double end, Cause cause) {
    end = std::clamp(end, at, now);
    if (end > at) on_wait_(worker, cause, at, end);
    at = end;
  };
  if (!pulls) return until(now, {Cause::Kind::weights});
  const Pulls& last = pulls.mapped();
  until(std::min(state.leased, last.parked_at.value_or(last.answered)), {Cause::Kind::samples});
  if (last.parked_at) {
    until(*last.parked_at, {Cause::Kind::request});
    // Without another worker, the bound has moved, or the worker's own push was on its way.
    const bool is_other = last.released_by && *last.released_by != worker;
    until(last.answered,
          is_other ? Cause{Cause::Kind::worker, *last.released_by} : Cause{Cause::Kind::request});
  } else {
    until(last.answered, {Cause::Kind::request});
  }
  until(now, {Cause::Kind::weights});
}

}  // namespace leeway::blame
