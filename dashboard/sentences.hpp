#pragma once
// Sentences about a run, for people who look at its page: each says what a view shows.
#include <string>

#include "dashboard/run_history.hpp"

namespace leeway::dashboard {

/// A stage is slow if its operations take this much longer than those of its peers.
inline constexpr double kSlowStage = 1.2;

std::string lost_sentence(const RunHistory& run);
std::string staleness_sentence(const RunHistory& run);
std::string blocked_sentence(const RunHistory& run);
std::string leads_sentence(const RunHistory& run);
std::string alive_sentence(const RunHistory& run);
std::string loss_sentence(const RunHistory& run);
std::string throughput_sentence(const RunHistory& run);
/// Empty without stages.
std::string pipeline_sentence(const RunHistory& run);

/// Samples per second over the last intervals.
double samples_per_second(const RunHistory& run);

}  // namespace leeway::dashboard
