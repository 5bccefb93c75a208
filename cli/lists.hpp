#pragma once
// Lists of figures as flags have them: speeds and sizes of memory.
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway::cli {

/// "1,2,0.5" as thousandths, each 0.001 to 1000000; further digits are refused, since nothing may
/// depend on how they are rounded. The error shows how to write it.
Expected<std::vector<std::int64_t>> parse_speeds(const std::string& text);

/// "512MB,2GiB,1000" as bytes; units are B, kB, MB, GB, KiB, MiB and GiB.
Expected<std::vector<std::int64_t>> parse_sizes(const std::string& text);

}  // namespace leeway::cli
