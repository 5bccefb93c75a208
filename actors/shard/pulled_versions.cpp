#include "actors/shard/pulled_versions.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/limits.hpp"

namespace leeway {

void PulledVersions::record(WorkerId worker, Iteration iteration, const BlockState& state) {
  add(worker, iteration, state.version, {state.progress, keeps_weights_ ? state.weights : Blob()});
}

void PulledVersions::add(WorkerId worker, Iteration iteration, Version version,
                         const Pulled& pulled) {
  Kept& kept = versions_[version];
  if (kept.pulls++ == 0) kept.pulled = pulled;
  Pulls& pulls = open_[worker];
  if (const auto earlier = pulls.find(iteration); earlier != pulls.end()) close(pulls, earlier);
  pulls[iteration] = version;
  if (pulls.size() > limits::kMaxOpenPulls) close(pulls, pulls.begin());
}

PulledVersions::Pulls::iterator PulledVersions::close(Pulls& pulls, Pulls::iterator pull) {
  const auto kept = versions_.find(pull->second);
  if (--kept->second.pulls == 0) versions_.erase(kept);
  return pulls.erase(pull);
}

const PulledVersions::Pulled* PulledVersions::find(WorkerId worker, Version version) const {
  const auto own = open_.find(worker);
  if (own == open_.end()) return nullptr;
  const auto has_version = [&](const auto& pull) { return pull.second == version; };
  if (std::ranges::none_of(own->second, has_version)) return nullptr;
  return &versions_.at(version).pulled;
}

void PulledVersions::forget(WorkerId worker, Iteration upto) {
  const auto own = open_.find(worker);
  if (own == open_.end()) return;
  Pulls& pulls = own->second;
  for (auto pull = pulls.begin(); pull != pulls.end() && pull->first <= upto;)
    pull = close(pulls, pull);
  if (pulls.empty()) open_.erase(own);
}

std::vector<msg::PulledVersion> PulledVersions::save(const Block& block) const {
  std::vector<msg::PulledVersion> saved;
  std::set<Version> sent;  // with their weights
  for (const auto& [worker, pulls] : open_)
    for (const auto& [iteration, version] : pulls) {
      const auto& [progress, weights] = versions_.at(version).pulled;
      msg::BlockData data{block.id, version};
      if (weights && sent.insert(version).second)
        data = {block.id, version, DType::f32, Shape{block.floats}, weights};
      saved.push_back({worker, iteration, progress, std::move(data)});
    }
  return saved;
}

void PulledVersions::restore(const std::vector<msg::PulledVersion>& state, Executor& on) {
  versions_.clear();
  open_.clear();
  for (const auto& [worker, iteration, progress, weights] : state) {
    Pulled pulled{progress, {}};
    if (keeps_weights_ && weights.data && !versions_.contains(weights.version))
      pulled.weights = on.fetch(weights.data);
    add(worker, iteration, weights.version, pulled);
  }
}

}  // namespace leeway
