#include "policies/pipeline/zb_v.hpp"

#include <algorithm>

#include "policies/pipeline/flushed.hpp"
#include "policies/pipeline/v_stage.hpp"

namespace leeway::pipeline {

namespace {

constexpr VStage::Step kF0{OpKind::forward, 0}, kF1{OpKind::forward, 1};
constexpr VStage::Step kI0{OpKind::backward_input, 0}, kI1{OpKind::backward_input, 1};
constexpr VStage::Step kW0{OpKind::backward_weights, 0}, kW1{OpKind::backward_weights, 1};

/// The micro-batches of the shortest update that fills the pipeline.
int fewest_full(const Spec& spec) {
  return 2 * spec.stages - 1;
}

}  // namespace

std::vector<Op> ZbV::stage(const Spec& spec, int stage) const {
  const int remaining = spec.stages - stage;  // stages from this one on
  const int micro_batches = std::max(spec.micro_batches, fewest_full(spec));
  VStage phases(spec);
  // Forwards, until the first micro-batch is back from the last stage; then in turn with those of
  // the second chunk, until its first gradient is here.
  phases.repeat(2 * remaining - 1, {kF0});
  phases.repeat(stage, {kF1, kF0});
  // The second chunk's backwards, until the first gradient is back from the last stage.
  phases.repeat(remaining, {kF1, kI1, kW1});
  phases.repeat(micro_batches - spec.stages, {kF0, kI0, kW0, kF1, kI1, kW1});
  // The previous stages wait for gradients, so those of the weights come last.
  phases.repeat(stage, {kI0, kI1});
  phases.repeat(remaining, {kI0, kW0});
  phases.repeat(stage, {kW1});
  phases.repeat(stage, {kW0});
  return flushed(spec, phases.ops());
}

std::optional<Share> ZbV::bubble(const Spec& spec, const OpCosts& costs) const {
  const std::int64_t inputs = costs.backward_input, weights = costs.backward_weights;
  const bool known =
      spec.micro_batches >= fewest_full(spec) && std::max(costs.forward, weights) <= inputs;
  if (spec.stages > 1 && !known) return std::nullopt;
  const std::int64_t in_first = std::max(inputs, 2 * (inputs - weights));
  const std::int64_t in_later = std::max(inputs - costs.forward, 2 * (inputs - weights));
  return flushed_bubble(spec, costs, in_first, in_later);
}

int ZbV::peak_activations(const Spec& spec, int stage) const {
  const int micro_batches = spec.micro_batches;
  return std::min({2 * micro_batches, micro_batches + stage + 1, 2 * spec.stages});
}

int ZbV::peak_pending_backwards(const Spec& spec, int stage) const {
  // Before the first weights of the end, `stage` micro-batches of each chunk wait, and one more.
  const int missing = std::max(0, fewest_full(spec) - spec.micro_batches);
  const auto waiting = [&](int newer) { return std::clamp(stage + newer - missing, 0, stage); };
  const int of_first = waiting(spec.stages - stage), of_second = waiting(0);
  const bool one_more = missing < spec.stages - stage;
  return std::max(1, of_first + of_second + (one_more ? 1 : 0));
}

}  // namespace leeway::pipeline
