#pragma once
// Effects: what the stragglers and faults of a plan have done to a run, and which of them had no
// effect.
#include "actors/job.hpp"
#include "actors/monitor/monitor.hpp"

namespace leeway {

/// Sizes the tables of a report that have an entry per worker, straggler or fault of the plan.
void size_tables(RunReport& report, const Plan& plan);

/// Adds the counts of the job's hosts to the monitor's report: effects of stragglers and faults,
/// and what ended workers had not reported. A worker that a fault of the plan has crashed gets the
/// end text of the fault.
void add_host_counts(RunReport& report, const Job& job);

/// Fills `warnings` of the report of a run that has ended well.
///
/// A straggler has no effect if it adds less than 1% to the iterations that it slows, because these
/// mostly wait for messages. A fault has none if it did not begin.
void find_ineffective(RunReport& report, const Job& job);

}  // namespace leeway
