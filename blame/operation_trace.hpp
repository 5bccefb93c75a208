#pragma once
// OperationTrace: the measured operations of a job, which may be of another training system.
//
// The columns are those of the traces of Lin et al., "Understanding Stragglers in Large Model
// Training Using What-if Analysis", OSDI 2025.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway::blame {

/// A pipeline stage of one data-parallel replica.
struct Rank {
  int replica = 0, stage = 0;
  auto operator<=>(const Rank&) const = default;
};

struct Operation {
  Rank rank;
  std::int64_t step = 0;
  std::size_t kind = 0;            // of OperationTrace::kinds
  int number = 0;                  // among the operations of its kind in the step and rank
  double start = 0, duration = 0;  // seconds

  double end() const { return start + duration; }
};

struct OperationTrace {
  std::vector<std::string> kinds;
  std::vector<Operation> operations;
  int replicas = 0, stages = 0;
};

/// The operations of each step, in their order in the trace.
std::map<std::int64_t, std::vector<Operation>> operations_by_step(const OperationTrace& trace);

/// Reads a CSV file, which may be gzipped, with a header. Required columns, in any order: dp_rank,
/// stage, step, optype, start_ts, duration, seq_id; others are ignored. The error names file, line
/// and column, or ends with the advice if the file cannot be read.
Expected<OperationTrace> read_operations(
    const std::string& path, std::string_view advice = "give --import a CSV file of operations");

}  // namespace leeway::blame
