#pragma once
// ZB-V: zero bubble with two chunks per stage in a V. The first stage has the end of the model too,
// so its backwards begin early, and all stages keep equally many activations.
//
// Source: Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, 2023, and "Pipeline
// Parallelism with Controllable Memory", NeurIPS 2024, where it is V-ZB. This is the handcrafted
// schedule, for forwards and backwards of equal time. The authors' code also searches schedules for
// other times; Leeway's tables do not depend on times.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// The tables are those of PyTorch's ScheduleZBVZeroBubble. An update of fewer than 2 S - 1
/// micro-batches uses the table for 2 S - 1, and omits the missing ones. Let F, I and W be the
/// times of forward, backward for inputs and backward for weights of one chunk:
///
/// - Stage s keeps min(2 M, M + s + 1, 2 S) activations of a chunk. 2 S are as much memory as the S
///   of the first stage of 1f1b, because a chunk is half as large.
/// - It keeps at most 2 s + 1 gradients; peak_pending_backwards() has the formula for any M.
/// - If M >= 2 S - 1 and F, W <= I, each stage idles (S - 1) * max(I, 2 (I - W)) in the first
///   update, and (S - 1) * max(I - F, 2 (I - W)) in each later one. If all are equal, that is
///   the time until the first activation of the run reaches the last stage. Otherwise no closed
///   form is known.
class ZbV final : public Schedule {
 public:
  std::string_view name() const override { return "zb_v"; }
  Placement::Shape placement() const override { return Placement::Shape::v; }
  Status allows(const Spec& spec) const override { return two_chunks(spec); }
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int stage) const override;
  int peak_pending_backwards(const Spec& spec, int stage) const override;
};

}  // namespace leeway::pipeline
