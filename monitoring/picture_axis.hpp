#pragma once
// Axis: maps values to pixels and chooses round, readable ticks.
#include <optional>
#include <string>
#include <utility>
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

  /// Shows the values of `extent`, from pixel `begin` to `end`. `whole` widens it to the ticks
  /// around it. An empty or single extent is widened as well. On a logarithmic axis `extent` is
  /// positive.
  Axis(Extent extent, double begin, double end, bool whole, bool logarithmic);

  /// The pixel of a value, kept within a few lengths of the axis so that it can always be printed.
  double pixel(double value) const;
  /// Whether a value has a place at all.
  bool can_show(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void tick_linear(double begin, double end, bool whole);
  void tick_decades(bool whole);

  bool logarithmic_;
  double low_, high_;  // logarithms where logarithmic
  double begin_, end_;
  std::vector<Tick> ticks_;
};

/// Values as short labels that differ from one another: "0.25", "20k", "5e-6".
std::vector<std::string> tick_labels(const std::vector<double>& values);

}  // namespace leeway
