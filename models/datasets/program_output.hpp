#pragma once
// program_output: what another program prints, for data that only its own program can read.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// Runs `command`, found in PATH, without a shell and without input, and waits for its end. The
/// error names the program and what came of it, and ends in `advice`: it is not there, it failed,
/// or it printed nothing.
Expected<std::vector<std::byte>> program_output(const std::vector<std::string>& command,
                                                std::string_view advice);

}  // namespace leeway
