#include "core/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include "core/text.hpp"

namespace leeway {

namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> number_of(std::string_view text) {
  text = trimmed(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// The number in a file; nullopt for "max" or without the file.
std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return number_of(line);
}

/// The number after `key` at the start of a line.
std::optional<std::uint64_t> number_after(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return number_of(std::string_view(line).substr(key.size()));
  return std::nullopt;
}

/// The names of one version's files in the folder of a control group.
struct GroupFiles {
  const char *limit, *used, *active_cache, *inactive_cache;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_active_file ", "total_inactive_file "};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "active_file ", "inactive_file "};

/// Version 1 has such a number instead of no limit.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

/// Bytes below the limit of one group. Cached files do not count as used: the kernel frees them.
std::uint64_t left_in(const fs::path& folder, const GroupFiles& files) {
  const auto limit = number_in(folder / files.limit);
  const auto used = number_in(folder / files.used);
  if (!limit || !used || *limit >= kNoLimit) return AvailableMemory::kUnknown;
  const fs::path stat = folder / "memory.stat";
  const std::uint64_t cache = number_after(stat, files.active_cache).value_or(0) +
                              number_after(stat, files.inactive_cache).value_or(0);
  const std::uint64_t kept = *used - std::min(*used, cache);
  return *limit - std::min(*limit, kept);
}

/// The least over a group and all groups above it. In a container the group's own path may be
/// missing below the mount, whose root is then the group.
std::uint64_t left_along(const fs::path& mount, fs::path group, const GroupFiles& files) {
  std::uint64_t least = left_in(mount, files);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path())
    least = std::min(least, left_in(mount / group, files));
  return least;
}

}  // namespace

AvailableMemory available_memory(const fs::path& root) {
  AvailableMemory memory;
  if (const auto kilobytes = number_after(root / "proc/meminfo", "MemAvailable:"))
    memory.machine = *kilobytes * 1024;
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // "0::/path" for version 2, "4:memory:/path" for version 1.
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,")
      memory.group = std::min(memory.group, left_along(mount, group, kVersion2));
    else if (controllers.find(",memory,") != std::string::npos)
      memory.group = std::min(memory.group, left_along(mount / "memory", group, kVersion1));
  }
  return memory;
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Status check_memory(const std::string& file, std::string_view what, std::uint64_t bytes,
                    std::string_view advice, const AvailableMemory& memory) {
  if (bytes <= memory.least()) return {};
  const auto words = [](std::uint64_t value) {
    return value == AvailableMemory::kUnknown ? std::string("no limit") : size_text(value);
  };
  return Error{concat(file, ": ", what, " needs ", size_text(bytes), " of memory, but only ",
                      size_text(memory.least()), " are available (on the machine ",
                      words(memory.machine), ", in the control group ", words(memory.group), "); ",
                      advice)};
}

}  // namespace leeway
