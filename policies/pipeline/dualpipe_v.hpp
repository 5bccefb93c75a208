#pragma once
// DualPipeV: two chunks per stage in a V, one forward and one backward in turn. Backwards are whole
// in the middle of an update, and in two at its beginning and end, where weights fill the bubble.
//
// Source: Qi, Wan, Huang and Lin, "DualPipe could be better without the Dual", 2025, which cuts
// DualPipe in half (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.2.1 and figure 5);
// https://github.com/deepseek-ai/DualPipe has both. There, a forward runs at the same time as a
// backward, to hide messages. A stage of Leeway computes one operation at a time, and its messages
// never wait for it.
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// The tables are those of PyTorch's ScheduleDualPipeV, with each pair that overlaps there as a
/// forward and then a backward. It needs M >= 2 S. Let F, I and W be the times of forward, backward
/// for inputs and backward for weights of one chunk:
///
/// - Each stage keeps 2 S + 1 activations of a chunk, and stage s keeps s + 1 gradients.
/// - If I <= F <= I + W, each stage idles (S - 1) * max(F, F + I - W). Otherwise no closed form is
///   known.
class DualPipeV final : public Schedule {
 public:
  std::string_view name() const override { return "dualpipe_v"; }
  Placement::Shape placement() const override { return Placement::Shape::v; }
  Status allows(const Spec& spec) const override;
  std::vector<Op> stage(const Spec& spec, int stage) const override;
  std::optional<Share> bubble(const Spec& spec, const OpCosts& costs) const override;
  int peak_activations(const Spec& spec, int) const override { return 2 * spec.stages + 1; }
  int peak_pending_backwards(const Spec&, int stage) const override { return stage + 1; }
};

}  // namespace leeway::pipeline
