#include "policies/pipeline/endless.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace leeway::pipeline {

Op later(Op op, int micro_batches, int times) {
  op.micro_batch += micro_batches * times;
  op.version += times;
  return op;
}

std::vector<Op> Endless::played(int micro_batches, int times) const {
  std::vector<Op> ops = first;
  for (int time = 0; time < times; ++time)
    for (const Op& op : again) ops.push_back(later(op, micro_batches, time));
  for (const Op& op : last) ops.push_back(later(op, micro_batches, times));
  return ops;
}

Endless endless(const Spec& spec, int stage) {
  const auto schedule = find_schedule(spec.schedule);
  LW_CHECK(schedule.has_value(), spec.schedule);
  Spec one = spec;
  one.updates = 1;
  if (!(*schedule)->asynchronous()) return {{}, (*schedule)->stage(one, stage), {}, 0};
  // Two tables that differ by one update, both long enough to reach the steady state. They agree
  // until the shorter one begins to drain, and have the same end.
  Spec shorter = spec;
  shorter.updates = 2 * (spec.stages - 1) / spec.micro_batches + 2;
  Spec longer = shorter;
  ++longer.updates;
  const auto a = (*schedule)->stage(shorter, stage), b = (*schedule)->stage(longer, stage);
  const auto drain = std::find_if(a.rbegin(), a.rend(), [](const Op& op) {
                       return op.kind == OpKind::forward;
                     }).base();
  Endless endless;
  endless.first.assign(a.begin(), drain);
  endless.last.assign(drain, a.end());
  endless.again.assign(b.begin() + (drain - a.begin()), b.end() - (a.end() - drain));
  endless.updates = shorter.updates;
  return endless;
}

}  // namespace leeway::pipeline
