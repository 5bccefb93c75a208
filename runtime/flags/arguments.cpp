#include "runtime/flags/arguments.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace leeway {

std::vector<double> arguments_of(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || !text.ends_with(')')) return {};
  text.remove_prefix(name.size());
  if (text.empty() || text.front() != '(') return {};
  text.remove_prefix(1);
  std::vector<double> numbers;
  while (true) {  // each number ends with a comma, the last with the bracket
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, number);
    if (error != std::errc() || !std::isfinite(number)) return {};
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.size() == 1) return numbers;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
}

std::optional<std::uint32_t> as_count(double number) {
  const bool counts = number >= 1 && number <= std::numeric_limits<std::uint32_t>::max() &&
                      number == std::floor(number);
  if (!counts) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

}  // namespace leeway
