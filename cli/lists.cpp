#include "cli/lists.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway::cli {
namespace {

/// Reads a number with up to three digits after the point, in thousandths, and removes it from
/// `text`.
std::optional<std::int64_t> take_thousandths(std::string_view& text) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  std::int64_t whole = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (failed != std::errc() || whole < 0 || whole > kMost) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  std::int64_t value = 1000 * whole;
  if (!text.starts_with('.')) return value;
  text.remove_prefix(1);
  std::int64_t unit = 100;
  bool any = false;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), unit /= 10) {
    if (unit == 0) return std::nullopt;
    value += unit * (text[0] - '0');
    any = true;
  }
  return any ? std::optional(value) : std::nullopt;
}

template <class Read>
Expected<std::vector<std::int64_t>> parse_list(const std::string& text, Read read) {
  std::vector<std::int64_t> out;
  for (const std::string& item : comma_separated(text)) {
    const std::optional<std::int64_t> value = read(item);
    if (!value) return Error{concat('"', item, '"')};
    out.push_back(*value);
  }
  return out;
}

}  // namespace

Expected<std::vector<std::int64_t>> parse_speeds(const std::string& text) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto speeds = parse_list(text, [](std::string_view item) -> std::optional<std::int64_t> {
    const auto speed = take_thousandths(item);
    if (!speed || !item.empty() || *speed < 1 || *speed > kMost) return std::nullopt;
    return speed;
  });
  if (speeds) return speeds;
  return Error{concat("--speeds: ", speeds.error().text,
                      " is not a speed; give one per stage, from 0.001 to 1000000 with up to three "
                      "digits after the point: --speeds 1,2,0.5")};
}

Expected<std::vector<std::int64_t>> parse_sizes(const std::string& text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kUnits = {
      {{"", 1},
       {"B", 1},
       {"kB", 1000},
       {"MB", 1'000'000},
       {"GB", 1'000'000'000},
       {"KiB", 1 << 10},
       {"MiB", 1 << 20},
       {"GiB", 1 << 30}}};
  const auto sizes = parse_list(text, [&](std::string_view item) -> std::optional<std::int64_t> {
    using Wide = __int128;
    // Bytes without a unit may exceed the range of numbers in thousandths.
    if (const auto bytes = parse_number<std::int64_t>(item))
      return *bytes >= 0 && *bytes <= kMost ? bytes : std::nullopt;
    const auto number = take_thousandths(item);
    const auto* unit = std::find_if(kUnits.begin(), kUnits.end(),
                                    [&](const auto& known) { return known.first == item; });
    if (!number || unit == kUnits.end()) return std::nullopt;
    const Wide size = Wide{*number} * unit->second / 1000;
    return size <= kMost ? std::optional(static_cast<std::int64_t>(size)) : std::nullopt;
  });
  if (sizes) return sizes;
  return Error{concat("--memory: ", sizes.error().text,
                      " is not a size; give one for all stages or one each, such as --memory "
                      "512MB,2GiB")};
}

}  // namespace leeway::cli
