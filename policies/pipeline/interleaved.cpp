#include "policies/pipeline/interleaved.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace leeway::pipeline {

namespace {

/// Forwards before a stage's first backward.
int forwards_ahead(const Spec& spec, int stage) {
  const int behind = spec.stages - stage - 1;
  const int ahead = spec.chunks == 1 ? behind : 2 * behind + (spec.chunks - 1) * spec.stages;
  return std::min(ahead, spec.micro_batches * spec.chunks);
}

/// The k-th forward of an update: a group of micro-batches through chunk 0, then through chunk 1,
/// ..., then the next group.
Op forward_at(const Spec& spec, int k) {
  const int group = spec.stages * spec.chunks;
  return {OpKind::forward, k / group * spec.stages + k % spec.stages, k % group / spec.stages, 0};
}

/// The k-th backward: the same order, from the last chunk to the first.
Op backward_at(const Spec& spec, int k) {
  Op op = forward_at(spec, k);
  op.kind = OpKind::backward;
  op.chunk = spec.chunks - 1 - op.chunk;
  return op;
}

}  // namespace

Status Interleaved::allows(const Spec& spec) const {
  const int over = spec.micro_batches % spec.stages;
  if (over == 0) return {};
  const int below = spec.micro_batches - over, above = below + spec.stages;
  return Error{concat("interleaved: ", spec.micro_batches,
                      spec.micro_batches == 1 ? " micro-batch is" : " micro-batches are",
                      " no multiple of ", spec.stages, " stages; give --micro-batches ",
                      below > 0 ? concat(below, " or ") : "", above)};
}

std::vector<Op> Interleaved::stage(const Spec& spec, int stage) const {
  const int all = spec.micro_batches * spec.chunks, ahead = forwards_ahead(spec, stage);
  std::vector<Op> ops;
  for (int version = 0; version < spec.updates; ++version) {
    const int first = version * spec.micro_batches;
    const auto add = [&](Op op) {
      op.micro_batch += first;
      op.version = version;
      ops.push_back(op);
    };
    for (int k = 0; k < all + ahead; ++k) {
      if (k < all) add(forward_at(spec, k));
      if (k >= ahead) add(backward_at(spec, k - ahead));
    }
    for (int chunk = 0; chunk < spec.chunks; ++chunk)
      ops.push_back({OpKind::update, first + spec.micro_batches - 1, chunk, version + 1});
  }
  return ops;
}

std::optional<Share> Interleaved::bubble(const Spec& spec, const OpCosts&) const {
  return Share{spec.stages - 1, std::int64_t{spec.chunks} * spec.micro_batches + spec.stages - 1};
}

int Interleaved::peak_activations(const Spec& spec, int stage) const {
  return std::min(spec.micro_batches * spec.chunks, forwards_ahead(spec, stage) + 1);
}

}  // namespace leeway::pipeline
