#pragma once
// program_output: runs a program and reads its output, for data that only this program can decode.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// Runs `command`, found in PATH, without a shell and without input, and waits for its end. Errors:
/// the program is missing, fails, or prints nothing. They name the program and end with `advice`.
Expected<std::vector<std::byte>> program_output(const std::vector<std::string>& command,
                                                std::string_view advice);

}  // namespace leeway
