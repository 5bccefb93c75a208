#pragma once
// Weight stashing: 1F1B without a flush. A forward reads the newest weights of its stage, which
// keeps them for the backward of that micro-batch.
//
// Source: Harlap et al., "PipeDream: Fast and Efficient Pipeline Parallel DNN Training", 2018, and
// Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019,
// section 3.3. The paper updates after every micro-batch (M = 1). Vertical sync, which makes all
// stages use the same version for a micro-batch, is omitted here.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// A table of `updates` updates fills the pipeline once and drains it at the end; endless() repeats
/// its middle. With N = M * updates micro-batches the bubble is (S - 1) / (N + S - 1), which tends
/// to 0. Stage s keeps min(N, S - s) activations and 1 + ceil((S - s - 1) / M) versions, and its
/// gradients lag by one update less than that.
class WeightStashing final : public Schedule {
 public:
  std::string_view name() const override { return "weight_stashing"; }
  bool asynchronous() const override { return true; }
  Status allows(const Spec& spec) const override { return one_chunk(spec); }
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
  int weight_versions(const Spec& spec, int stage) const override;
  int version_lag(const Spec& spec, int stage) const override;
};

}  // namespace leeway::pipeline
