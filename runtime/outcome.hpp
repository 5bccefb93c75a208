#pragma once
// The outcome of a run: its Result from the monitor's totals, and the ways to continue it.
#include <string>

#include "actors/monitor/monitor.hpp"
#include "monitoring/run_folder.hpp"
#include "runtime/scenario.hpp"

namespace leeway {

/// Fills the result of a run that has ended.
void fill(Result& result, const Job& job, RunTotals totals);

/// Saves the last evaluated weights of a failed run, whose latest weights may be lost with a shard.
/// `folder` may be null.
void keep_last_snapshot(Result& result, RunFolder* folder);

/// How to resume a run that did not end well; empty if it cannot be, or is done.
std::string resume_text(const Job& job, const Result& result, const RunOptions& options);

}  // namespace leeway
