#pragma once
// Parses flags that are lists of speeds or memory sizes.
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway::cli {

/// "1,2,0.5" as thousandths, each 0.001 to 1000000. More digits are refused, so that results do not
/// depend on rounding.
Expected<std::vector<std::int64_t>> parse_speeds(const std::string& text);

/// "512MB,2GiB,1000" as bytes; units are B, kB, MB, GB, KiB, MiB and GiB.
Expected<std::vector<std::int64_t>> parse_sizes(const std::string& text);

}  // namespace leeway::cli
