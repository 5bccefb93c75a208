#include "policies/pipeline/gpipe.hpp"

#include "policies/pipeline/flushed.hpp"

namespace leeway::pipeline {

std::vector<Op> GPipe::stage(const Spec& spec, int) const {
  std::vector<Op> ops;
  for (const OpKind kind : {OpKind::forward, OpKind::backward})
    for (int m = 0; m < spec.micro_batches; ++m) ops.push_back({kind, m});
  return flushed(spec, ops);
}

std::optional<Share> GPipe::bubble(const Spec& spec, const OpCosts&) const {
  return Share{spec.stages - 1, spec.micro_batches + spec.stages - 1};
}

}  // namespace leeway::pipeline
