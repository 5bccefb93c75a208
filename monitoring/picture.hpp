#pragma once
// Line charts as SVG text, for reports and for the web page.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leeway {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>>
      points;  // (x, y), joined in this order; a point that is not finite leaves a gap
  bool dashed = false;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::optional<std::pair<double, double>>
      y_range;         // lowest and highest y shown; what lies beyond is cut off
  bool log_y = false;  // a y of 0 or less leaves a gap
};

struct PictureOptions {
  int columns = 2;        // charts side by side
  int chart_width = 560;  // pixels, legend and labels included
  int chart_height = 360;
};

/// One SVG picture of all charts, row by row. Colours follow the order of the series, so the same
/// series in each chart of a picture has the same colour; they can be told apart by the
/// colour-blind. From the eighth on colours come again, dotted. Text of any bytes is escaped. Long
/// series are thinned without losing their extremes, to keep the picture of ordinary charts below
/// 200 KB. Deterministic in its arguments. Requires columns, chart_width and chart_height of at
/// least 1, 200 and 150.
std::string svg(std::span<const Chart> charts, const PictureOptions& options = {});

/// Round numbers (1, 2 or 5 times a power of ten apart) within [low, high], about `count` of them.
/// Requires low < high, finite.
std::vector<double> round_ticks(double low, double high, int count);

/// At most about `most` points of the line that keep its shape: of each stretch the first, the
/// lowest, the highest and the last.
std::vector<std::pair<double, double>> thin(std::span<const std::pair<double, double>> points,
                                            std::size_t most);

}  // namespace leeway
