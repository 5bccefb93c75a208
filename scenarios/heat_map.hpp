#pragma once
// A table of numbers as an SVG picture of coloured cells.
#include <string>
#include <vector>

namespace leeway::study {

struct HeatMap {
  std::string title;
  std::vector<std::string> columns, rows;
  /// By row and column. 1 is neutral; 0: never; infinity: nothing to compare with.
  std::vector<std::vector<double>> values;
};

/// Values above 1 are blue, values below 1 orange, and both are written into their cells.
std::string svg(const HeatMap& map);

}  // namespace leeway::study
