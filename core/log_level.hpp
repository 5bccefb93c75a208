#pragma once
// LogLevel: the importance of a line in the log of a node.
#include <cstdint>

namespace leeway {

enum class LogLevel : std::uint8_t { info, warning, error };

}  // namespace leeway
