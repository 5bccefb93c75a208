#pragma once
// Interleaved zero bubble: the interleaved schedule with the two backwards of ZB-H1. A stage has
// several chunks of the model, and its backwards for weights fill what would be a bubble.
//
// Source: Narayanan et al., SC 2021, section 2.2, for the order of chunks; Qi et al., "Zero Bubble
// Pipeline Parallelism", ICLR 2024, section 2.1, for the two backwards. PyTorch combines them in
// ScheduleInterleavedZeroBubble.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// The groups are those of interleaved, with G micro-batches each, and the tables are those of
/// PyTorch. Stage s begins its backwards after (V - 1) G + S - s - 1 forwards, and delays each
/// backward for weights by s others. With one chunk the table is that of zb_h1. Let F, I and W be
/// the times of forward, backward for inputs and backward for weights of one chunk:
///
/// - A stage keeps min(V M, (V - 1) G + S) activations of a chunk, and min(V M, s + 1) gradients.
/// - If M >= S, each stage idles (S - 1) * max(F, I, F + I - W) in the first update, and
///   (S - 1) * max(I, F + I - W) in each later one: a third of what it idles with interleaved if
///   all are equal. With fewer micro-batches no closed form is known.
class InterleavedZb final : public Schedule {
 public:
  std::string_view name() const override { return "interleaved_zb"; }
  Status allows(const Spec& spec) const override;
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
  int peak_pending_backwards(const Spec& spec, int stage) const override;
};

}  // namespace leeway::pipeline
