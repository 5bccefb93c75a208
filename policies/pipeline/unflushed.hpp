#pragma once
// Shared by the schedules without a flush: 1F1B over all micro-batches of all updates.
#include <algorithm>
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// `version_of(micro_batch, newest)` returns the version that a micro-batch uses; the stage has
/// made the versions up to `newest`.
template <class VersionOf>
std::vector<Op> unflushed(const Spec& spec, int stage, VersionOf version_of) {
  const int all = spec.micro_batches * spec.updates;
  const int ahead = std::min(all, spec.stages - stage - 1);
  std::vector<int> versions;
  std::vector<Op> ops;
  int newest = 0;
  for (int m = 0; m < all + ahead; ++m) {
    if (m < all) {
      versions.push_back(version_of(m, newest));
      ops.push_back({OpKind::forward, m, 0, versions.back()});
    }
    const int back = m - ahead;
    if (back < 0) continue;
    ops.push_back({OpKind::backward, back, 0, versions[static_cast<std::size_t>(back)]});
    if ((back + 1) % spec.micro_batches == 0) ops.push_back({OpKind::update, back, 0, ++newest});
  }
  return ops;
}

inline Share unflushed_bubble(const Spec& spec) {
  return {spec.stages - 1, std::int64_t{spec.micro_batches} * spec.updates + spec.stages - 1};
}

inline int unflushed_peak(const Spec& spec, int stage) {
  return std::min(spec.micro_batches * spec.updates, spec.stages - stage);
}

}  // namespace leeway::pipeline
