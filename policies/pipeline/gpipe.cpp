#include "policies/pipeline/gpipe.hpp"

namespace leeway::pipeline {

std::vector<Op> GPipe::stage(const Spec& spec, int) const {
  std::vector<Op> ops;
  for (int version = 0; version < spec.updates; ++version) {
    const int first = version * spec.micro_batches, end = first + spec.micro_batches;
    for (int m = first; m < end; ++m) ops.push_back({OpKind::forward, m, 0, version});
    for (int m = first; m < end; ++m) ops.push_back({OpKind::backward, m, 0, version});
    ops.push_back({OpKind::update, end - 1, 0, version + 1});
  }
  return ops;
}

std::optional<Share> GPipe::bubble(const Spec& spec, const OpCosts&) const {
  return Share{spec.stages - 1, spec.micro_batches + spec.stages - 1};
}

}  // namespace leeway::pipeline
