#include "actors/shard/pull_gate.hpp"

#include <algorithm>

#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "policies/consistency/consistency.hpp"

namespace leeway {

bool PullGate::is_allowed(WorkerId worker, Iteration iteration, Clock own_clock) const {
  return may_start(iteration, clocks_.min_clock(), tied_.common_clock(worker), own_clock,
                   bounds_.of(iteration));
}

PullGate::Parking PullGate::park(const ParkedPull& pull) {
  const std::uint32_t held = parked_of(pull.worker);
  if (held > 0) {
    const auto earlier = std::find_if(parked_.begin(), parked_.end(), [&](const ParkedPull& other) {
      return other.worker == pull.worker && other.pull.iteration == pull.pull.iteration;
    });
    if (earlier != parked_.end()) {
      earlier->pull = pull.pull;
      return Parking::repeat;
    }
  }
  if (held >= limits::kMaxPullsPerWorker) return Parking::refused;
  if (planted(Mutant::parked_pull_forgotten)) return Parking::parked;
  add(pull);
  return Parking::parked;
}

void PullGate::add(const ParkedPull& pull) {
  const std::size_t index = pull.worker.value();
  if (parked_of_.size() <= index) parked_of_.resize(index + 1);
  ++parked_of_[index];
  parked_.push_back(pull);
}

msg::PullGateState PullGate::save() const {
  msg::PullGateState state{.parked = {}, .swept_at = swept_at_};
  for (const ParkedPull& pull : parked_)
    state.parked.push_back({pull.worker, pull.pull, pull.since.ns});
  return state;
}

void PullGate::restore(const msg::PullGateState& state) {
  parked_.clear();
  parked_of_.clear();
  for (const auto& pull : state.parked) add({pull.worker, pull.pull, Instant{pull.since}});
  swept_at_ = state.swept_at;
}

std::vector<ParkedPull> PullGate::release(std::optional<WorkerId> mover, Instant now) {
  // The rule depends on min_clock, on the clocks of the worker and its siblings, and on the bound.
  // As long as min_clock and the bound stand, only pulls of the mover or a sibling can be allowed.
  if (mover && clocks_.min_clock() == swept_at_ && !has_parked_with_siblings(*mover)) return {};
  swept_at_ = clocks_.min_clock();
  auto released = take_if([&](const ParkedPull& pull) { return is_allowed(pull); });
  for (const ParkedPull& pull : released)
    if (mover && pull.worker != *mover)
      waits_.add(pull.worker, *mover, std::max(Duration{}, now - pull.since));
  return released;
}

std::vector<ParkedPull> PullGate::withdraw(WorkerId worker) {
  return take_if([&](const ParkedPull& pull) { return pull.worker == worker; });
}

template <class Leaves>
std::vector<ParkedPull> PullGate::take_if(Leaves leaves) {
  std::vector<ParkedPull> taken;
  std::erase_if(parked_, [&](const ParkedPull& pull) {
    if (!leaves(pull)) return false;
    --parked_of_[pull.worker.value()];
    taken.push_back(pull);
    return true;
  });
  return taken;
}

bool PullGate::has_parked_with_siblings(WorkerId worker) const {
  const auto siblings = tied_.siblings(worker);
  return parked_of(worker) > 0 ||
         std::any_of(siblings.begin(), siblings.end(),
                     [&](WorkerId sibling) { return parked_of(sibling) > 0; });
}

}  // namespace leeway
