#pragma once
// table_of: the table of a valid spec.
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "core/check.hpp"
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

inline Table table_of(const Spec& spec) {
  auto table = make_table(spec);
  LW_CHECK(table.has_value(), table ? "" : table.error().text);
  return *table;
}

/// A number of micro-batches below `end` that the interleaved schedules accept.
inline int any_interleaved(int stages, int end) {
  std::vector<int> accepted;
  for (int count = 1; count < end; ++count)
    if (count % std::max(1, count / stages) == 0) accepted.push_back(count);
  return *rc::gen::elementOf(accepted);
}

/// Gives the spec chunks and micro-batches, below `end` if possible, that its schedule accepts.
inline void make_valid(Spec& spec, int end) {
  if (spec.schedule.starts_with("interleaved")) {
    spec.chunks = *rc::gen::inRange(1, 5);
    spec.micro_batches = any_interleaved(spec.stages, end);
  }
  if (spec.schedule == "2bw") spec.micro_batches = std::max(spec.micro_batches, spec.stages - 1);
  if (spec.schedule == "zb_v" || spec.schedule == "dualpipe_v") spec.chunks = 2;
  if (spec.schedule == "dualpipe_v")
    spec.micro_batches = std::max(spec.micro_batches, 2 * spec.stages);
}

}  // namespace leeway::pipeline
