#include "actors/scheduler/partial_iterations.hpp"

#include <algorithm>
#include <iterator>

#include "core/mutant.hpp"

namespace leeway {

AppliedBuckets united(const AppliedBuckets& a, const AppliedBuckets& b) {
  AppliedBuckets both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

bool PartialIterations::add(std::uint32_t stage, ShardId shard, Clock clock,
                            const std::vector<std::uint32_t>& applied, std::uint32_t buckets) {
  const auto key =
      std::pair(static_cast<std::uint16_t>(stage), static_cast<std::uint16_t>(shard.value()));
  const auto [at, fresh] = at_.try_emplace(key, AtShard{clock, {}, buckets});
  if (!fresh) return false;
  for (const std::uint32_t bucket : applied)
    if (bucket < buckets) at->second.applied.push_back(bucket);
  buckets_ += buckets;
  return true;
}

Clock PartialIterations::whole() const {
  if (at_.empty()) return {};
  Clock whole = at_.begin()->second.clock;
  for (const auto& [key, at] : at_)
    whole = planted(Mutant::partial_push_counted_as_trained) ? std::max(whole, at.clock)
                                                             : std::min(whole, at.clock);
  return whole;
}

Iteration PartialIterations::untouched() const {
  Iteration untouched;
  for (const auto& [key, at] : at_)
    untouched = std::max(untouched, Iteration(at.clock.value() + (at.applied.empty() ? 0 : 1)));
  return untouched;
}

AppliedBuckets PartialIterations::applied(Iteration iteration) const {
  AppliedBuckets list;
  for (const auto& [key, at] : at_) {
    if (at.clock.value() < iteration.value()) continue;
    if (at.clock.value() == iteration.value()) {
      for (const std::uint32_t bucket : at.applied) list.push_back({key.first, key.second, bucket});
    } else {
      for (std::uint32_t bucket = 0; bucket < at.buckets; ++bucket)
        list.push_back({key.first, key.second, bucket});
    }
  }
  return list;
}

}  // namespace leeway
