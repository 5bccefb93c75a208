#include "heat_map.hpp"

#include <leeway/core/text.hpp>
#include <leeway/monitoring/format.hpp>

#include <algorithm>
#include <cmath>

namespace leeway::study {
namespace {

constexpr int kLabelWidth = 230, kCellWidth = 96, kCellHeight = 24, kTop = 62;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return out;
}

/// From white at 1 to the full colour at a factor of 2 or more.
std::string colour_of(double value) {
  const double strength = std::clamp(std::abs(std::log2(value)), 0.0, 1.0);
  const int full[2][3] = {{230, 120, 0}, {0, 114, 178}};
  const auto& to = full[value >= 1 ? 1 : 0];
  const auto mixed = [&](int part) { return std::lround(255 + strength * (to[part] - 255)); };
  return concat("rgb(", mixed(0), ',', mixed(1), ',', mixed(2), ')');
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return concat("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\">", escaped(text),
                "</text>\n");
}

}  // namespace

std::string svg(const HeatMap& map) {
  const auto width = kLabelWidth + kCellWidth * static_cast<int>(map.columns.size()) + 10;
  const auto height = kTop + kCellHeight * static_cast<int>(map.rows.size()) + 10;
  std::string out =
      concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
             "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" "
             "height=\"100%\" fill=\"white\"/>\n",
             text_at(10, 22, "start", map.title));
  for (std::size_t column = 0; column < map.columns.size(); ++column)
    out += text_at(kLabelWidth + (static_cast<double>(column) + 0.5) * kCellWidth, kTop - 10,
                   "middle", map.columns[column]);
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double y = kTop + static_cast<double>(row) * kCellHeight;
    out += text_at(kLabelWidth - 8, y + 16, "end", map.rows[row]);
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values[row][column];
      const bool reached = value > 0;
      const double x = kLabelWidth + static_cast<double>(column) * kCellWidth;
      out += concat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", kCellWidth - 1, "\" height=\"",
                    kCellHeight - 1, "\" fill=\"", reached ? colour_of(value) : "#ddd", "\"/>\n");
      out += text_at(x + kCellWidth / 2.0, y + 16, "middle",
                     !reached               ? "never"
                     : std::isfinite(value) ? fixed(value, 2)
                                            : "only this");
    }
  }
  return out + "</svg>\n";
}

}  // namespace leeway::study
