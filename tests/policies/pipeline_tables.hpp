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

/// A number of micro-batches below `end` that interleaved accepts.
inline int any_interleaved(int stages, int end) {
  std::vector<int> accepted;
  for (int count = 1; count < end; ++count)
    if (count % std::max(1, count / stages) == 0) accepted.push_back(count);
  return *rc::gen::elementOf(accepted);
}

}  // namespace leeway::pipeline
