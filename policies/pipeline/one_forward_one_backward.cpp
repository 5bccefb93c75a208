#include "policies/pipeline/one_forward_one_backward.hpp"

#include <algorithm>

namespace leeway::pipeline {

std::vector<Op> OneForwardOneBackward::stage(const Spec& spec, int stage) const {
  const int ahead = std::min(spec.micro_batches, spec.stages - stage - 1);
  std::vector<Op> ops;
  for (int version = 0; version < spec.updates; ++version) {
    const int first = version * spec.micro_batches, end = first + spec.micro_batches;
    for (int m = first; m < end + ahead; ++m) {
      if (m < end) ops.push_back({OpKind::forward, m, 0, version});
      if (m - ahead >= first) ops.push_back({OpKind::backward, m - ahead, 0, version});
    }
    ops.push_back({OpKind::update, end - 1, 0, version + 1});
  }
  return ops;
}

std::optional<Share> OneForwardOneBackward::bubble(const Spec& spec, const OpCosts&) const {
  return Share{spec.stages - 1, spec.micro_batches + spec.stages - 1};
}

int OneForwardOneBackward::peak_activations(const Spec& spec, int stage) const {
  return std::min(spec.micro_batches, spec.stages - stage);
}

}  // namespace leeway::pipeline
