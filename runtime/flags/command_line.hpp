#pragma once
// Words of a command line that begins with the flags of a run.
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/scenario.hpp"

namespace leeway {

/// The number of words at the beginning that are flags of this scenario and their values. Counts
/// unknown flags, which parse() refuses.
std::size_t leading_flags(const Scenario& scenario, const std::vector<std::string>& words);

}  // namespace leeway
