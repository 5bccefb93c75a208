#pragma once
// The summary of a run as text, and the content of result.json.
#include <string>

#include "actors/monitor/monitor.hpp"

namespace leeway {

/// "4 workers, 2 shards", or "2 pipelines of 4 stages (1f1b, 8 micro-batches), 2 shards".
std::string describe_actors(const Plan& plan);

/// The samples trained since the run began or was resumed.
std::uint64_t samples_of_this_process(const Job& job, const RunReport& totals);

std::string summary(const Job& job, const RunReport& totals);

/// The content of result.json.
std::string result_json(const Job& job, const RunReport& totals);

/// The version lag that `share` of the pushes do not exceed; lags[i] counts pushes with lag i.
std::size_t lag_quantile(const std::vector<std::uint64_t>& lags, double share);

}  // namespace leeway
