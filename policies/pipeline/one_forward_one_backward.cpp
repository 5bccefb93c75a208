#include "policies/pipeline/one_forward_one_backward.hpp"

#include <algorithm>

#include "policies/pipeline/flushed.hpp"

namespace leeway::pipeline {

std::vector<Op> OneForwardOneBackward::stage(const Spec& spec, int stage) const {
  const int ahead = std::min(spec.micro_batches, spec.stages - stage - 1);
  std::vector<Op> ops;
  for (int m = 0; m < spec.micro_batches + ahead; ++m) {
    if (m < spec.micro_batches) ops.push_back({OpKind::forward, m});
    if (m >= ahead) ops.push_back({OpKind::backward, m - ahead});
  }
  return flushed(spec, ops);
}

std::optional<Share> OneForwardOneBackward::bubble(const Spec& spec, const OpCosts&) const {
  return Share{spec.stages - 1, spec.micro_batches + spec.stages - 1};
}

int OneForwardOneBackward::peak_activations(const Spec& spec, int stage) const {
  return std::min(spec.micro_batches, spec.stages - stage);
}

}  // namespace leeway::pipeline
