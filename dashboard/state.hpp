#pragma once
// The state of the page as JSON, which dashboard/page/state.js and dashboard/terminal.cpp read.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dashboard/run_history.hpp"

namespace leeway::dashboard {

/// Figures that only the process of the run knows.
struct ProcessFigures {
  std::uint64_t memory_bytes = 0;
  std::uint64_t lost_events = 0;  // arrived faster than the page could count them
};

/// The whole state if `since` is 0, else its members that have changed after this revision. The
/// list of `intervals` begins at index `from`.
nlohmann::ordered_json state_of(const RunHistory& run, const ProcessFigures& process,
                                std::uint64_t since = 0);
/// An operation of a stage, as in the state; `end` in seconds of the run.
nlohmann::ordered_json operation_of(const event::StageComputed& computed, double end);
/// As text; bytes of names that are not UTF-8 are replaced.
std::string text_of(const nlohmann::ordered_json& json);

}  // namespace leeway::dashboard
