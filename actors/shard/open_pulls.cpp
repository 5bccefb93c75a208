#include "actors/shard/open_pulls.hpp"

#include <iterator>
#include <limits>

#include "core/limits.hpp"

namespace leeway {

bool OpenPulls::is_outdated(const Age& age) const {
  constexpr double kRounding = 1e-9;  // of sums of weights such as 1/3
  return progress_ - age.progress >= limit_ - kRounding;
}

void OpenPulls::answered(const Pull& pull) {
  open_[pull] = {progress_, false};
  const auto first = open_.lower_bound({pull.worker, Iteration()});
  const auto end =
      open_.upper_bound({pull.worker, Iteration(std::numeric_limits<std::int64_t>::max())});
  if (std::distance(first, end) > std::ptrdiff_t{limits::kMaxPullsPerWorker}) open_.erase(first);
}

void OpenPulls::forget(WorkerId worker) {
  std::erase_if(open_, [&](const auto& entry) { return entry.first.worker == worker; });
}

std::vector<OpenPulls::Pull> OpenPulls::take_outdated() {
  std::vector<Pull> found;
  for (auto& [pull, age] : open_)
    if (!age.reported && is_outdated(age)) {
      age.reported = true;
      found.push_back(pull);
    }
  return found;
}

std::vector<OpenPulls::Pull> OpenPulls::outdated(WorkerId worker) const {
  std::vector<Pull> found;
  for (const auto& [pull, age] : open_)
    if (pull.worker == worker && age.reported) found.push_back(pull);
  return found;
}

msg::OpenPullsState OpenPulls::save() const {
  msg::OpenPullsState state{.progress = progress_};
  for (const auto& [pull, age] : open_)
    state.pulls.push_back({pull.worker, pull.iteration, age.progress, age.reported});
  return state;
}

void OpenPulls::restore(const msg::OpenPullsState& state) {
  progress_ = state.progress;
  open_.clear();
  for (const auto& [worker, iteration, progress, reported] : state.pulls)
    open_[{worker, iteration}] = {progress, reported};
}

}  // namespace leeway
