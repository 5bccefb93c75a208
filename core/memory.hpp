#pragma once
// Memory that this process can still use, by the machine and by its control groups.
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "core/expected.hpp"

namespace leeway {

struct AvailableMemory {
  static constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t machine = kUnknown;  // MemAvailable of /proc/meminfo
  std::uint64_t group = kUnknown;    // the least that a limit of a control group leaves

  std::uint64_t least() const { return machine < group ? machine : group; }
};

/// Reads /proc and the control groups (version 1 and 2) below `root`. A missing or unreadable file
/// counts as no limit.
AvailableMemory available_memory(const std::filesystem::path& root = "/");

/// Memory that this process holds now; 0 if unknown.
std::uint64_t resident_bytes();

/// An error if `what`, such as "reading it", needs more bytes than are available. It names the
/// file, the need, both limits and `advice`.
Status check_memory(const std::string& file, std::string_view what, std::uint64_t bytes,
                    std::string_view advice, const AvailableMemory& memory = available_memory());

}  // namespace leeway
