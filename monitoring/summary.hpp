#pragma once
// The run's summary as text for people, and result.json's content for programs.
#include <string>

#include "actors/monitor/monitor.hpp"

namespace leeway {

/// Who takes part: "4 workers, 2 shards", or "2 pipelines of 4 stages (1f1b, 8 micro-batches), 2
/// shards".
std::string crew(const Plan& plan);

/// `folder` is where the run is kept; empty: nowhere.
std::string summary(const Job& job, const RunTotals& totals, const std::string& folder);

/// One JSON object, indented.
std::string result_json(const Job& job, const RunTotals& totals);

/// Lag below which `share` of the pushes lie, by the counts of result.json's version_lag.
std::size_t lag_quantile(const std::vector<std::uint64_t>& lags, double share);

}  // namespace leeway
