#pragma once
// The outcome of a run: its Result from the monitor's totals, and the ways to continue it.
#include <string>

#include "actors/monitor/monitor.hpp"
#include "monitoring/run_folder.hpp"
#include "runtime/scenario.hpp"

namespace leeway {

/// The result of a run that has not ended, with tables of full length.
Result empty_result(const Plan& plan);

/// Fills the result of a run that has ended, and whose hosts have ended.
void fill(Result& result, const Job& job, RunTotals totals);

/// Saves the last evaluated weights of a failed run, whose latest weights may be lost with a shard.
/// `folder` may be null.
void keep_last_snapshot(Result& result, RunFolder* folder);

/// Writes the result, the weights and the curves. The run has failed if the first or the second
/// could not be written.
void keep_result(Result& result, const Job& job, RunFolder& folder);

/// A warning if the disk of the run folder has no space for the trained weights; otherwise empty.
std::string space_note(const std::string& folder, const Job& job);

/// A warning if a worker of this process rounds operands to 16 bits and multiplies them in fp32,
/// which is slower than fp32; otherwise empty.
std::string precision_note(const Job& job);

/// Fails the run if a straggler or fault had no effect.
void be_strict(Result& result);

/// The standard output is on a full disk, or its reader has ended.
inline constexpr const char* kUnwritten =
    "the output could not be written; check the disk or the program that reads it";

/// The command that continues the run from its last checkpoint.
std::string resume_command(const Job& job, const RunOptions& options);

/// How to resume a run that did not end well; empty if it cannot be, or is done.
std::string resume_text(const Job& job, const Result& result, const RunOptions& options);

}  // namespace leeway
