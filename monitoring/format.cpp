#include "monitoring/format.hpp"

#include <cmath>
#include <cstdio>

#include "core/text.hpp"

namespace leeway {

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string counted(std::uint64_t number, const char* thing) {
  return grouped(number) + ' ' + thing + (number == 1 ? "" : "s");
}

std::string fixed(double number, int digits) {
  if (std::isnan(number)) return "nan";  // printf may print "-nan"
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string percent(double share) {
  return fixed(100 * share, 2) + "%";
}

std::string duration(double seconds) {
  if (seconds < 1) return concat(std::lround(seconds * 1000), " ms");
  if (seconds < 60) return fixed(seconds, 1) + " s";
  const auto whole = static_cast<std::int64_t>(std::lround(seconds));
  if (whole < 3600) return concat(whole / 60, " min ", whole % 60, " s");
  return concat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

std::string signed_percent(double share) {
  return concat(share < 0 ? "-" : "+", fixed(100 * std::abs(share), 1), '%');
}

std::string codec_text(std::uint64_t bytes, std::uint64_t bytes_without_codec) {
  if (bytes == bytes_without_codec || bytes == 0) return {};
  const double times = static_cast<double>(bytes_without_codec) / static_cast<double>(bytes);
  return concat(size_text(bytes), " instead of ", size_text(bytes_without_codec), ", ",
                static_cast<double>(std::llround(10 * times)) / 10, " times fewer");
}

}  // namespace leeway
