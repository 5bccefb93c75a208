#include "policies/pipeline/interleaved_zb.hpp"

#include <algorithm>

#include "policies/pipeline/flushed.hpp"
#include "policies/pipeline/interleaved_order.hpp"

namespace leeway::pipeline {

Status InterleavedZb::allows(const Spec& spec) const {
  return equal_groups(spec);
}

std::vector<Op> InterleavedZb::stage(const Spec& spec, int stage) const {
  const int all = spec.micro_batches * spec.chunks;
  const int forwards_ahead =
      std::min(all, (spec.chunks - 1) * group_size(spec) + spec.stages - stage - 1);
  std::vector<Op> ops;
  for (int k = -forwards_ahead; k < all + stage; ++k) {  // counts the backwards for inputs
    if (k + forwards_ahead < all) ops.push_back(forward_at(spec, k + forwards_ahead));
    if (k >= 0 && k < all) ops.push_back(backward_at(spec, k, OpKind::backward_input));
    if (k >= stage) ops.push_back(backward_at(spec, k - stage, OpKind::backward_weights));
  }
  return flushed(spec, ops);
}

std::optional<Share> InterleavedZb::bubble(const Spec& spec, const OpCosts& costs) const {
  if (spec.stages > 1 && spec.micro_batches < spec.stages) return std::nullopt;
  const std::int64_t forward = costs.forward, inputs = costs.backward_input;
  const std::int64_t in_later = std::max(inputs, forward + inputs - costs.backward_weights);
  const std::int64_t in_first = std::max(forward, in_later);
  return flushed_bubble(spec, costs, in_first, in_later);
}

int InterleavedZb::peak_activations(const Spec& spec, int) const {
  return std::min(spec.chunks * spec.micro_batches,
                  (spec.chunks - 1) * group_size(spec) + spec.stages);
}

int InterleavedZb::peak_pending_backwards(const Spec& spec, int stage) const {
  return std::min(spec.chunks * spec.micro_batches, stage + 1);
}

}  // namespace leeway::pipeline
