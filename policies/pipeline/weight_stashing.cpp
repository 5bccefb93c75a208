#include "policies/pipeline/weight_stashing.hpp"

#include "policies/pipeline/unflushed.hpp"

namespace leeway::pipeline {

std::vector<Op> WeightStashing::stage(const Spec& spec, int stage) const {
  return unflushed(spec, stage, [](int, int newest) { return newest; });
}

std::optional<Share> WeightStashing::bubble(const Spec& spec, const OpCosts&) const {
  return unflushed_bubble(spec);
}

int WeightStashing::peak_activations(const Spec& spec, int stage) const {
  return unflushed_peak(spec, stage);
}

int WeightStashing::weight_versions(const Spec& spec, int stage) const {
  return 1 + version_lag(spec, stage);
}

int WeightStashing::version_lag(const Spec& spec, int stage) const {
  const int ahead = spec.stages - stage - 1;
  return (ahead + spec.micro_batches - 1) / spec.micro_batches;
}

}  // namespace leeway::pipeline
