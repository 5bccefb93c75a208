#pragma once
// For schedules that flush the pipeline at each update: all updates have the same operations.
#include <vector>

#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

/// A stage's operations of all updates. `first`: the forwards and backwards of the first one. Then
/// each chunk makes the next version of its weights.
inline std::vector<Op> flushed(const Spec& spec, const std::vector<Op>& first) {
  std::vector<Op> ops;
  ops.reserve((first.size() + static_cast<std::size_t>(spec.chunks)) *
              static_cast<std::size_t>(spec.updates));
  for (int version = 0; version < spec.updates; ++version) {
    const int begin = version * spec.micro_batches, end = begin + spec.micro_batches;
    for (const Op& op : first) ops.push_back({op.kind, begin + op.micro_batch, op.chunk, version});
    for (int chunk = 0; chunk < spec.chunks; ++chunk)
      ops.push_back({OpKind::update, end - 1, chunk, version + 1});
  }
  return ops;
}

/// The bubble of updates that have enough micro-batches. Each stage idles (S - 1) times `first` in
/// the first update, and (S - 1) times `later` in each later one.
inline Share flushed_bubble(const Spec& spec, const OpCosts& costs, std::int64_t first,
                            std::int64_t later) {
  const std::int64_t idle = (spec.stages - 1) * (first + (spec.updates - 1) * later);
  const std::int64_t passes = std::int64_t{spec.chunks} * spec.micro_batches * spec.updates;
  return {idle, passes * costs.of_micro_batch() + idle};
}

}  // namespace leeway::pipeline
