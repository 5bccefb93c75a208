#include "policies/straggler/trace.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway {

namespace {

/// Each worker with a trace keeps its factors in memory.
constexpr std::size_t kMaxTraceBytes = std::size_t{1} << 20;

Expected<std::string> whole_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{concat(path, ": is a folder; give a file with one factor per line")};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{concat(path, ": cannot be read: ", std::strerror(errno), "; check the path")};
  std::string text(kMaxTraceBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxTraceBytes)
    return Error{concat(path, ": has more than ", kMaxTraceBytes,
                        " bytes; give a shorter trace (a trace repeats)")};
  return text;
}

std::optional<double> factor_of(std::string_view line) {
  const auto value = parse_number<double>(line);
  return value && *value >= 1 && *value <= plan::kMaxSlowdown ? value : std::nullopt;
}

std::vector<double> factors_of(const std::string& path) {
  auto factors = read_trace(path);
  LW_CHECK(factors.has_value(), factors.error().text);
  return std::move(*factors);
}

}  // namespace

Expected<std::vector<double>> read_trace(const std::string& path) {
  const auto text = whole_file(path);
  if (!text) return text.error();
  std::vector<double> factors;
  std::istringstream lines(*text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string_view entry = trimmed(line);
    if (entry.empty() || entry.front() == '#') continue;
    const auto factor = factor_of(entry);
    if (!factor)
      return Error{concat(path, ':', number, ": \"", entry.substr(0, 40),
                          "\" is not a factor; give one number from 1 to 1000000, such as 2.5")};
    factors.push_back(*factor);
  }
  if (factors.empty())
    return Error{concat(path, ": has no factors; give one number per line, such as 2.5")};
  return factors;
}

TraceStraggler::TraceStraggler(const plan::Trace& spec)
    : RepeatedStraggler(factors_of(spec.file)) {}

}  // namespace leeway
