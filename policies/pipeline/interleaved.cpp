#include "policies/pipeline/interleaved.hpp"

#include <algorithm>

#include "policies/pipeline/flushed.hpp"
#include "policies/pipeline/interleaved_order.hpp"

namespace leeway::pipeline {

namespace {

/// Forwards before a stage's first backward.
int forwards_ahead(const Spec& spec, int stage) {
  const int behind = spec.stages - stage - 1;
  const int ahead = spec.chunks == 1 ? behind : 2 * behind + (spec.chunks - 1) * group_size(spec);
  return std::min(ahead, spec.micro_batches * spec.chunks);
}

}  // namespace

Status Interleaved::allows(const Spec& spec) const {
  return equal_groups(spec);
}

std::vector<Op> Interleaved::stage(const Spec& spec, int stage) const {
  const int all = spec.micro_batches * spec.chunks, ahead = forwards_ahead(spec, stage);
  std::vector<Op> ops;
  for (int k = 0; k < all + ahead; ++k) {
    if (k < all) ops.push_back(forward_at(spec, k));
    if (k >= ahead) ops.push_back(backward_at(spec, k - ahead, OpKind::backward));
  }
  return flushed(spec, ops);
}

std::optional<Share> Interleaved::bubble(const Spec& spec, const OpCosts&) const {
  if (spec.chunks > 1 && spec.micro_batches % spec.stages != 0) return std::nullopt;
  return Share{spec.stages - 1, std::int64_t{spec.chunks} * spec.micro_batches + spec.stages - 1};
}

int Interleaved::peak_activations(const Spec& spec, int stage) const {
  return std::min(spec.micro_batches * spec.chunks, forwards_ahead(spec, stage) + 1);
}

}  // namespace leeway::pipeline
