#include "policies/pipeline/two_buffered_weights.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "policies/pipeline/unflushed.hpp"

namespace leeway::pipeline {

Status TwoBufferedWeights::allows(const Spec& spec) const {
  if (auto ok = one_chunk(spec); !ok) return ok;
  if (spec.micro_batches >= spec.stages - 1) return {};
  return Error{concat("2bw: ", spec.micro_batches,
                      spec.micro_batches == 1 ? " micro-batch per update is too few for "
                                              : " micro-batches per update are too few for ",
                      spec.stages, " stages with two versions; give --micro-batches ",
                      spec.stages - 1, ", or --stages ", spec.micro_batches + 1)};
}

std::vector<Op> TwoBufferedWeights::stage(const Spec& spec, int stage) const {
  return unflushed(spec, stage, [&](int micro_batch, int) {
    return std::max(0, micro_batch / spec.micro_batches - 1);
  });
}

std::optional<Share> TwoBufferedWeights::bubble(const Spec& spec, const OpCosts&) const {
  return unflushed_bubble(spec);
}

int TwoBufferedWeights::peak_activations(const Spec& spec, int stage) const {
  return unflushed_peak(spec, stage);
}

}  // namespace leeway::pipeline
