#include "policies/pipeline/interleaved_order.hpp"

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

}  // namespace

Status equal_groups(const Spec& spec) {
  if (has_equal_groups(spec, spec.micro_batches)) return {};
  int below = spec.micro_batches - 1, above = spec.micro_batches + 1;
  while (!has_equal_groups(spec, below)) --below;
  while (!has_equal_groups(spec, above)) ++above;
  return Error{concat(spec.schedule, ": ", spec.micro_batches, " micro-batches on ", spec.stages,
                      " stages do not make ", groups_of(spec),
                      " equal groups; give --micro-batches ", below, " or ", above)};
}

int group_size(const Spec& spec) {
  return spec.micro_batches / groups_of(spec);
}

Op forward_at(const Spec& spec, int k) {
  const int size = group_size(spec), group = size * spec.chunks;
  return {OpKind::forward, k / group * size + k % size, k % group / size, 0};
}

Op backward_at(const Spec& spec, int k, OpKind kind) {
  Op op = forward_at(spec, k);
  op.kind = kind;
  op.chunk = spec.chunks - 1 - op.chunk;
  return op;
}

}  // namespace leeway::pipeline
