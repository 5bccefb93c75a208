#pragma once
// The page of a run as one HTML file, which needs no server and no network.
#include <string>

namespace leeway::dashboard {

/// `state`: the whole state as JSON; see dashboard/state.hpp.
std::string report_of(const std::string& state);

}  // namespace leeway::dashboard
