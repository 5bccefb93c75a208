#pragma once
// Line charts as SVG, for reports.
//
// Leeway writes the SVG itself: a report needs only lines, axes and a legend, and a run must not
// need a plotting program such as gnuplot on its machine.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leeway {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>>
      points;  // (x, y), joined in order; a point that is not finite leaves a gap
  bool dashed = false;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::optional<std::pair<double, double>>
      y_range;         // lowest and highest y shown; the rest is clipped
  bool log_y = false;  // a y of 0 or less leaves a gap
};

struct PictureOptions {
  int columns = 2;        // charts side by side
  int chart_width = 560;  // pixels, legend and labels included
  int chart_height = 360;
};

/// One SVG picture of all charts, row by row. Series i has the same colour in each chart; colours
/// are safe for colour-blind readers, and repeat with dotted lines from the eighth series on. All
/// text is escaped. Long series are thinned without losing their extremes, which keeps ordinary
/// pictures below 200 KB. The result depends only on the arguments. Requires columns >= 1,
/// chart_width >= 200 and chart_height >= 150.
std::string svg(std::span<const Chart> charts, const PictureOptions& options = {});

/// About `count` round numbers in [low, high], 1, 2 or 5 times a power of ten apart. Requires
/// finite low < high.
std::vector<double> round_ticks(double low, double high, int count);

/// About `most` points that keep the shape of the line: the first, lowest, highest and last point
/// of each section.
std::vector<std::pair<double, double>> thin(std::span<const std::pair<double, double>> points,
                                            std::size_t most);

}  // namespace leeway
