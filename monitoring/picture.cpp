#include "monitoring/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/check.hpp"
#include "core/text.hpp"
#include "monitoring/picture_axis.hpp"

namespace leeway {

namespace {

/// Okabe and Ito's colour-blind safe palette (2008), without yellow, which is too pale for lines on
/// white.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                              "#e69f00", "#56b4e9", "#4d4d4d"};
constexpr const char* kInk = "#222222";
constexpr const char* kFaint = "#666666";
constexpr const char* kGrid = "#e4e4e4";

/// Points of all lines of a picture; each takes about 11 bytes.
constexpr std::size_t kMaxPoints = 14'000;
constexpr std::size_t kFewestPoints = 16;

constexpr double kTitleSize = 15, kTextSize = 12;
constexpr double kLineHeight = 18;
constexpr double kLegendMark = 22, kLegendGap = 16;
constexpr double kLeft = 68, kRight = 18, kBottom = 48;
constexpr double kOverlap = 3;  // pixels of lines and dots beyond the plot's edge
constexpr std::size_t kLongestText = 80;

/// Approximate width of text in pixels in a sans-serif font.
double text_width(std::size_t characters) {
  return 6.6 * static_cast<double>(characters);
}

/// Bytes of the UTF-8 character at the start of `text`, or 0 if it is invalid.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80   ? 1
                             : byte(0) < 0xc2 ? 0
                             : byte(0) < 0xe0 ? 2
                             : byte(0) < 0xf0 ? 3
                             : byte(0) < 0xf5 ? 4
                                              : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length == 3) {
    const int code = (byte(0) & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
    if (code < 0x800 || (code >= 0xd800 && code < 0xe000) || code >= 0xfffe) return 0;
  }
  if (length == 4 && ((byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f)))
    return 0;
  return length;
}

struct Text {
  std::string xml;
  std::size_t characters = 0;
};

/// Escapes text for XML and shortens it; invalid characters become U+FFFD.
Text escape(std::string_view text) {
  Text out;
  while (!text.empty() && out.characters < kLongestText) {
    const std::size_t length = character_length(text);
    const char c = text[0];
    if (length == 0 || (c >= 0 && c < 0x20) || c == 0x7f) {
      out.xml += c == '\n' || c == '\t' ? " " : "\xef\xbf\xbd";
    } else if (c == '&' || c == '<' || c == '>' || c == '"') {
      out.xml += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&quot;";
    } else {
      out.xml += text.substr(0, length);
    }
    ++out.characters;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  if (!text.empty()) out.xml += "\xe2\x80\xa6";  // an ellipsis
  return out;
}

/// A coordinate with a precision of a tenth of a pixel.
std::string at(double pixels) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", pixels + 0.0);
  std::string out = text.data();
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out == "-0" ? "0" : out;
}

struct Box {
  double left, top, right, bottom;
};

/// Writes one chart's elements.
class ChartWriter {
 public:
  ChartWriter(const Chart& chart, Box outer, std::size_t number, std::size_t most_points)
      : chart_(chart), outer_(outer), number_(number), most_points_(most_points) {}

  std::string write() {
    const double below_title = outer_.top + (chart_.title.empty() ? 12 : 34);
    plot_ = {outer_.left + kLeft, legend(below_title) + 8, outer_.right - kRight,
             outer_.bottom - kBottom};
    plot_.bottom = std::max(plot_.bottom, plot_.top + 40);  // the legend may be tall
    if (!chart_.title.empty())
      text(escape(chart_.title), plot_.left, outer_.top + 24,
           concat("font-size=\"", kTitleSize, "\" font-weight=\"600\" fill=\"", kInk, "\""));
    find_extents();
    const Axis x(x_extent_, plot_.left, plot_.right, false, false);
    const Axis y(y_extent_, plot_.bottom, plot_.top, !chart_.y_range.has_value(), chart_.log_y);
    axes(x, y);
    out_ +=
        concat("<clipPath id=\"c", number_, "\"><rect x=\"", at(plot_.left - kOverlap), "\" y=\"",
               at(plot_.top - kOverlap), "\" width=\"", at(plot_.right - plot_.left + 2 * kOverlap),
               "\" height=\"", at(plot_.bottom - plot_.top + 2 * kOverlap),
               "\"/></clipPath>\n<g clip-path=\"url(#c", number_,
               ")\" fill=\"none\" stroke-width=\"1.6\" stroke-linejoin=\"round\" "
               "stroke-linecap=\"round\">\n");
    for (std::size_t i = 0; i < chart_.series.size(); ++i) line(i, x, y);
    out_ += "</g>\n";
    if (!any_point_)
      text(escape("no data"), (plot_.left + plot_.right) / 2, (plot_.top + plot_.bottom) / 2,
           concat("text-anchor=\"middle\" fill=\"", kFaint, "\""));
    return std::move(out_);
  }

 private:
  void text(const Text& content, double x, double y, const std::string& attributes) {
    out_ += concat("<text x=\"", at(x), "\" y=\"", at(y), "\" ", attributes, ">", content.xml,
                   "</text>\n");
  }

  static const char* colour(std::size_t series) { return kColours[series % kColours.size()]; }

  std::string stroke(std::size_t series) const {
    const char* dashes = chart_.series[series].dashed ? " stroke-dasharray=\"6 4\""
                         : series >= kColours.size()  ? " stroke-dasharray=\"2 3\""
                                                      : "";
    return concat("stroke=\"", colour(series), "\"", dashes);
  }

  /// Writes the names of the series in rows from `top` on, above the plot; returns their bottom.
  double legend(double top) {
    const double left = outer_.left + kLeft, right = outer_.right - kRight;
    double x = left, y = top;
    bool any = false;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const Text name = escape(chart_.series[i].name);
      if (name.characters == 0) continue;
      const double width = kLegendMark + 6 + text_width(name.characters);
      if (any && x + width > right) {
        x = left;
        y += kLineHeight;
      }
      any = true;
      out_ += concat("<path d=\"M", at(x), ",", at(y + 9), "h", kLegendMark,
                     "\" fill=\"none\" stroke-width=\"2.5\" ", stroke(i), "/>\n");
      text(name, x + kLegendMark + 6, y + 13, concat("fill=\"", kInk, "\""));
      x += width + kLegendGap;
    }
    return any ? y + kLineHeight : y;
  }

  bool shown(const std::pair<double, double>& point) const {
    constexpr double kMost = 1e300;
    return std::abs(point.first) <= kMost && std::abs(point.second) <= kMost &&
           (!chart_.log_y || point.second > 0);
  }

  void find_extents() {
    for (const auto& series : chart_.series) {
      for (const auto& point : series.points) {
        if (!shown(point)) continue;
        const auto [x, y] = point;
        x_extent_ = any_point_ ? widened(x_extent_, x) : Axis::Extent{x, x};
        y_extent_ = any_point_ ? widened(y_extent_, y) : Axis::Extent{y, y};
        any_point_ = true;
      }
    }
    if (chart_.y_range && chart_.y_range->first < chart_.y_range->second &&
        shown({0, chart_.y_range->first}) && shown({0, chart_.y_range->second}))
      y_extent_ = {chart_.y_range->first, chart_.y_range->second};
  }
  static Axis::Extent widened(Axis::Extent extent, double value) {
    return {std::min(extent.low, value), std::max(extent.high, value)};
  }

  void axes(const Axis& x, const Axis& y) {
    std::string grid, marks;
    for (const Tick& tick : y.ticks())
      grid += concat("M", at(plot_.left), ",", at(tick.at), "H", at(plot_.right));
    for (const Tick& tick : x.ticks())
      marks += concat("M", at(tick.at), ",", at(plot_.bottom), "v5");
    out_ += concat("<path d=\"", grid, "\" stroke=\"", kGrid, "\"/>\n");
    out_ += concat("<path d=\"M", at(plot_.left), ",", at(plot_.bottom), "H", at(plot_.right),
                   marks, "\" fill=\"none\" stroke=\"", kFaint, "\"/>\n");

    out_ += concat("<g fill=\"", kFaint, "\" text-anchor=\"middle\">\n");
    for (const Tick& tick : x.ticks()) text(escape(tick.label), tick.at, plot_.bottom + 19, "");
    const double middle = (plot_.left + plot_.right) / 2;
    text(escape(chart_.x_label), middle, plot_.bottom + 39, "");
    const double side = outer_.left + 16, height = (plot_.top + plot_.bottom) / 2;
    text(escape(chart_.y_label), side, height,
         concat("transform=\"rotate(-90 ", at(side), " ", at(height), ")\""));
    out_ += concat("</g>\n<g fill=\"", kFaint, "\" text-anchor=\"end\">\n");
    for (const Tick& tick : y.ticks()) text(escape(tick.label), plot_.left - 8, tick.at + 4, "");
    out_ += "</g>\n";
  }

  /// Writes one path for the lines of a series, and one for dots: points between two gaps.
  void line(std::size_t index, const Axis& x, const Axis& y) {
    std::string path, dots, stretch;
    int points = 0;  // since the last gap
    const auto finish_stretch = [&] {
      if (points == 1) dots += "M" + stretch + "h0";
      if (points > 1) path += "M" + stretch;
      stretch.clear();
      points = 0;
    };
    for (const auto& point : thin(chart_.series[index].points, most_points_)) {
      if (!shown(point)) {
        finish_stretch();
        continue;
      }
      if (points > 0) stretch += points == 1 ? 'L' : ' ';
      stretch += at(x.pixel(point.first)) + ',' + at(y.pixel(point.second));
      ++points;
    }
    finish_stretch();
    if (!path.empty()) out_ += concat("<path d=\"", path, "\" ", stroke(index), "/>\n");
    if (!dots.empty())
      out_ +=
          concat("<path d=\"", dots, "\" stroke=\"", colour(index), "\" stroke-width=\"6\"/>\n");
  }

  const Chart& chart_;
  Box outer_;
  Box plot_{};
  std::size_t number_;
  std::size_t most_points_;
  Axis::Extent x_extent_{0, 1};
  Axis::Extent y_extent_{chart_.log_y ? 0.1 : 0, 1};
  bool any_point_ = false;
  std::string out_;
};

}  // namespace

std::vector<std::pair<double, double>> thin(std::span<const std::pair<double, double>> points,
                                            std::size_t most) {
  if (points.size() <= most) return {points.begin(), points.end()};
  const std::size_t stretches = std::max<std::size_t>(1, most / 4);
  std::vector<std::pair<double, double>> out;
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t begin = s * points.size() / stretches;
    const std::size_t end = (s + 1) * points.size() / stretches;
    std::array<std::size_t, 4> keep{begin, begin, begin, end - 1};
    for (std::size_t i = begin; i < end; ++i) {
      const double y = points[i].second;
      if (!std::isfinite(y)) continue;
      const bool first_finite = !std::isfinite(points[keep[1]].second);
      if (first_finite || y < points[keep[1]].second) keep[1] = i;
      if (first_finite || y > points[keep[2]].second) keep[2] = i;
    }
    std::sort(keep.begin(), keep.end());
    for (std::size_t i = 0; i < keep.size(); ++i)
      if (i == 0 || keep[i] != keep[i - 1]) out.push_back(points[keep[i]]);
  }
  return out;
}

std::string svg(std::span<const Chart> charts, const PictureOptions& options) {
  LW_CHECK(options.columns >= 1 && options.chart_width >= 200 && options.chart_height >= 150,
           options.columns, options.chart_width, options.chart_height);
  std::size_t lines = 0;
  for (const Chart& chart : charts) lines += chart.series.size();
  const std::size_t most_points =
      std::max(kFewestPoints, kMaxPoints / std::max<std::size_t>(lines, 1));

  const auto count = std::max<std::size_t>(charts.size(), 1);
  const auto columns = std::min(static_cast<std::size_t>(options.columns), count);
  const std::size_t rows = (count + columns - 1) / columns;
  const auto width = columns * static_cast<std::size_t>(options.chart_width);
  const auto height = rows * static_cast<std::size_t>(options.chart_height);
  std::string out = concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width,
                           "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height,
                           "\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
                           "font-size=\"",
                           kTextSize, "\">\n<rect width=\"", width, "\" height=\"", height,
                           "\" fill=\"#ffffff\"/>\n");
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const auto left = static_cast<double>(i % columns) * options.chart_width;
    const auto top = static_cast<double>(i / columns) * options.chart_height;
    const Box box{left, top, left + options.chart_width, top + options.chart_height};
    out += ChartWriter(charts[i], box, i, most_points).write();
  }
  return out + "</svg>\n";
}

}  // namespace leeway
