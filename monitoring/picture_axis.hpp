#pragma once
// Axis: maps values to pixels and chooses round, readable ticks.
#include <string>
#include <vector>

namespace leeway {

struct Tick {
  double at = 0;  // pixels
  std::string label;
};

class Axis {
 public:
  struct Extent {
    double low = 0, high = 1;
  };

  /// Maps `extent` to the pixels from `begin` to `end`. `whole` widens the extent to the next
  /// ticks; an empty or single-valued extent is always widened. A logarithmic axis requires a
  /// positive extent.
  Axis(Extent extent, double begin, double end, bool whole, bool logarithmic);

  /// The pixel of a value, clamped to a few lengths of the axis.
  double pixel(double value) const;
  bool can_show(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void tick_linear(double begin, double end, bool whole);
  void tick_decades(bool whole);

  bool logarithmic_;
  double low_, high_;  // logarithms if the axis is logarithmic
  double begin_, end_;
  std::vector<Tick> ticks_;
};

/// Short, distinct labels of the values: "0.25", "20k", "5e-6".
std::vector<std::string> tick_labels(const std::vector<double>& values);

}  // namespace leeway
