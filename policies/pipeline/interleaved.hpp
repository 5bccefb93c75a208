#pragma once
// Interleaved 1F1B: each stage has several chunks of the model. Micro-batches go through all stages
// once per chunk, in groups of about as many micro-batches as there are stages.
//
// Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", SC 2021, section 2.2 and figure 4.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// An update has max(1, M / S) groups, rounded down, which must be equal: G micro-batches each. The
/// groups and the tables are those of PyTorch's ScheduleInterleaved1F1B, except that with one chunk
/// the table is that of 1f1b. With V chunks per stage:
///
/// - Stage s keeps min(V M, (V - 1) G + 2 (S - s - 1) + 1) activations of a chunk.
/// - The bubble is (S - 1) / (V M + S - 1) if M is a multiple of S. Otherwise it has no closed
/// form.
class Interleaved final : public Schedule {
 public:
  std::string_view name() const override { return "interleaved"; }
  Status allows(const Spec& spec) const override;
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
};

}  // namespace leeway::pipeline
