#include "policies/pipeline/zb_h1.hpp"

#include <algorithm>

#include "policies/pipeline/flushed.hpp"

namespace leeway::pipeline {

std::vector<Op> ZbH1::stage(const Spec& spec, int stage) const {
  const int most_ahead = spec.stages - stage;  // forwards whose backward is still to come
  std::vector<Op> ops;
  const int end = spec.micro_batches;
  int forward = 0, input = 0, weights = 0;
  const auto add = [&](OpKind kind, int& next) { ops.push_back({kind, next++}); };
  while (input < end) {
    while (forward < end && forward - input < most_ahead) add(OpKind::forward, forward);
    add(OpKind::backward_input, input);
    if (input - weights > stage) add(OpKind::backward_weights, weights);
  }
  while (weights < end) add(OpKind::backward_weights, weights);
  return flushed(spec, ops);
}

std::optional<Share> ZbH1::bubble(const Spec& spec, const OpCosts& costs) const {
  const bool filled = spec.micro_batches >= spec.stages &&
                      costs.backward_weights <= std::min(costs.forward, costs.backward_input);
  if (spec.stages > 1 && !filled) return std::nullopt;
  const std::int64_t idle =
      (spec.stages - 1) * (costs.forward + costs.backward_input - costs.backward_weights);
  return Share{idle, spec.micro_batches * costs.of_micro_batch() + idle};
}

int ZbH1::peak_activations(const Spec& spec, int) const {
  return std::min(spec.micro_batches, spec.stages);
}

int ZbH1::peak_pending_backwards(const Spec& spec, int stage) const {
  return std::min(spec.micro_batches, stage + 1);
}

}  // namespace leeway::pipeline
