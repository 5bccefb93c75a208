#include "policies/pipeline/interleaved.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace leeway::pipeline {

namespace {

/// Groups of an update.
int groups_of(const Spec& spec) {
  return std::max(1, spec.micro_batches / spec.stages);
}
/// Whether an update of this number of micro-batches has equal groups.
bool has_equal_groups(Spec spec, int micro_batches) {
  spec.micro_batches = micro_batches;
  return micro_batches % groups_of(spec) == 0;
}
/// Micro-batches of a group.
int group_size(const Spec& spec) {
  return spec.micro_batches / groups_of(spec);
}

/// Forwards before a stage's first backward.
int forwards_ahead(const Spec& spec, int stage) {
  const int behind = spec.stages - stage - 1;
  const int ahead = spec.chunks == 1 ? behind : 2 * behind + (spec.chunks - 1) * group_size(spec);
  return std::min(ahead, spec.micro_batches * spec.chunks);
}

/// The k-th forward of an update: a group of micro-batches through chunk 0, then through chunk 1,
/// ..., then the next group.
Op forward_at(const Spec& spec, int k) {
  const int size = group_size(spec), group = size * spec.chunks;
  return {OpKind::forward, k / group * size + k % size, k % group / size, 0};
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
  if (has_equal_groups(spec, spec.micro_batches)) return {};
  int below = spec.micro_batches - 1, above = spec.micro_batches + 1;
  while (!has_equal_groups(spec, below)) --below;
  while (!has_equal_groups(spec, above)) ++above;
  return Error{concat("interleaved: ", spec.micro_batches, " micro-batches on ", spec.stages,
                      " stages do not make ", groups_of(spec),
                      " equal groups; give --micro-batches ", below, " or ", above)};
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
  if (spec.chunks > 1 && spec.micro_batches % spec.stages != 0) return std::nullopt;
  return Share{spec.stages - 1, std::int64_t{spec.chunks} * spec.micro_batches + spec.stages - 1};
}

int Interleaved::peak_activations(const Spec& spec, int stage) const {
  return std::min(spec.micro_batches * spec.chunks, forwards_ahead(spec, stage) + 1);
}

}  // namespace leeway::pipeline
