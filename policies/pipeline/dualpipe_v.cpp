#include "policies/pipeline/dualpipe_v.hpp"

#include <algorithm>
#include <deque>

#include "core/text.hpp"
#include "policies/pipeline/flushed.hpp"
#include "policies/pipeline/v_stage.hpp"

namespace leeway::pipeline {

namespace {

constexpr VStage::Step kForward0{OpKind::forward, 0}, kForward1{OpKind::forward, 1};
constexpr VStage::Step kBackward0{OpKind::backward, 0}, kBackward1{OpKind::backward, 1};

/// The phases of one update, with the backwards for weights in the order of those for inputs.
class DualStage {
 public:
  explicit DualStage(const Spec& spec) : phases_(spec) {}

  void repeat(int times, std::initializer_list<VStage::Step> steps) {
    phases_.repeat(times, steps);
  }
  void add(VStage::Step step) { phases_.add(step); }
  void add_inputs(int chunk) {
    phases_.add({OpKind::backward_input, chunk});
    waiting_.push_back(chunk);
  }
  void add_weights() {
    phases_.add({OpKind::backward_weights, waiting_.front()});
    waiting_.pop_front();
  }
  const std::vector<Op>& ops() const { return phases_.ops(); }

 private:
  VStage phases_;
  std::deque<int> waiting_;  // chunks of the backwards for weights
};

}  // namespace

std::vector<Op> DualPipeV::stage(const Spec& spec, int stage) const {
  const int here = stage + 1, behind = spec.stages - here;
  DualStage phases(spec);
  phases.repeat(2 * behind, {kForward0});
  phases.repeat(here, {kForward0, kForward1});
  for (int i = 0; i < behind; ++i) {
    phases.add_inputs(1);
    phases.add_weights();
    phases.add(kForward1);
  }
  phases.repeat(spec.micro_batches - 2 * spec.stages + here,
                {kForward0, kBackward1, kForward1, kBackward0});
  phases.repeat(behind, {kBackward1, kForward1, kBackward0});
  // The second half of these leaves its weights for the time that the last gradients take.
  for (int i = 0; i < 2 * here; ++i) {
    const int chunk = 1 - i % 2;
    if (i < here)
      phases.add({OpKind::backward, chunk});
    else
      phases.add_inputs(chunk);
  }
  for (int i = 0; i < behind; ++i) {
    phases.add_weights();
    phases.add_inputs(0);
  }
  for (int i = 0; i < here; ++i) phases.add_weights();
  return flushed(spec, phases.ops());
}

Status DualPipeV::allows(const Spec& spec) const {
  if (auto ok = two_chunks(spec); !ok) return ok;
  if (spec.micro_batches >= 2 * spec.stages) return {};
  return Error{concat("dualpipe_v: ", spec.micro_batches, " micro-batches on ", spec.stages,
                      " stages are too few; give --micro-batches ", 2 * spec.stages, " or more",
                      spec.micro_batches > 1 ? concat(", or --stages ", spec.micro_batches / 2,
                                                      spec.micro_batches > 3 ? " or fewer" : "")
                                             : "")};
}

std::optional<Share> DualPipeV::bubble(const Spec& spec, const OpCosts& costs) const {
  const std::int64_t forward = costs.forward, inputs = costs.backward_input;
  const bool known = inputs <= forward && forward <= inputs + costs.backward_weights;
  if (spec.stages > 1 && !known) return std::nullopt;
  const std::int64_t idle =
      (spec.stages - 1) * std::max(forward, forward + inputs - costs.backward_weights);
  return Share{idle, std::int64_t{2} * spec.micro_batches * costs.of_micro_batch() + idle};
}

}  // namespace leeway::pipeline
