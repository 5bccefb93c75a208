#pragma once
// table_of: the table of a valid spec.

#include "core/check.hpp"
#include "policies/pipeline/schedule.hpp"

namespace leeway::pipeline {

inline Table table_of(const Spec& spec) {
  auto table = make_table(spec);
  LW_CHECK(table.has_value(), table ? "" : table.error().text);
  return *table;
}

}  // namespace leeway::pipeline
