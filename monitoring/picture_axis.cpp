#include "monitoring/picture_axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/check.hpp"
#include "monitoring/picture.hpp"

namespace leeway {

namespace {

/// Larger values are not drawn, because their differences may be infinite.
constexpr double kLargest = 1e300;
constexpr double kPixelsPerTick = 60;

struct Unit {
  double size;
  const char* suffix;
};
constexpr std::array kUnits{Unit{1e12, "T"}, Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e3, "k"}};

double round_step(double span, int count) {
  const double rough = span / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / power;
  return power * (digit <= 1.5 ? 1 : digit <= 3.5 ? 2 : digit <= 7.5 ? 5 : 10);
}

std::string print(const char* format, int digits, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, digits, value);
  return text.data();
}

/// "1.50e-06" -> "1.5e-6".
std::string shorten_exponent(std::string text) {
  const std::size_t e = text.find('e');
  std::string mantissa = text.substr(0, e);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return mantissa + "e" + std::to_string(std::stoi(text.substr(e + 1)));
}

/// Number of decimals that print all values / size to within a hundredth of the step between them.
int decimals_for(const std::vector<double>& values, double size, double step) {
  constexpr int kMost = 12;
  for (int decimals = 0; decimals < kMost; ++decimals) {
    const double grid = std::pow(10, decimals);
    if (std::all_of(values.begin(), values.end(), [&](double value) {
          return std::abs(std::round(value / size * grid) / grid * size - value) <= step / 100;
        }))
      return decimals;
  }
  return kMost;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  LW_CHECK(low < high && std::isfinite(high - low) && count > 0, low, high, count);
  const double step = round_step(high - low, count);
  std::vector<double> ticks;
  // Multiples of the step instead of sums, which would accumulate errors; -0 becomes 0.
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  for (double i = first; i <= last && ticks.size() < 1000; ++i) ticks.push_back(i * step + 0.0);
  return ticks;
}

std::vector<std::string> tick_labels(const std::vector<double>& values) {
  double largest = 0, step = INFINITY;
  for (std::size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::abs(values[i]));
    if (i > 0) step = std::min(step, std::abs(values[i] - values[i - 1]));
  }
  if (!std::isfinite(step)) step = largest;
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](Unit u) {
    return largest >= 10 * u.size || (largest >= u.size && step >= u.size);
  });
  const bool scaled = unit != kUnits.end();
  const double size = scaled ? unit->size : 1;
  const bool scientific = largest > 0 && (largest < 1e-3 || largest >= 1e16);
  const int decimals = decimals_for(values, size, step);

  std::vector<std::string> labels;
  for (const double value : values) {
    if (value == 0) {
      labels.emplace_back("0");
    } else if (scientific) {
      labels.push_back(shorten_exponent(print("%.*e", 4, value)));
    } else {
      labels.push_back(print("%.*f", decimals, value / size) + (scaled ? unit->suffix : ""));
    }
  }
  return labels;
}

Axis::Axis(Extent extent, double begin, double end, bool whole, bool logarithmic)
    : logarithmic_(logarithmic), begin_(begin), end_(end) {
  double low = std::clamp(extent.low, -kLargest, kLargest);
  double high = std::clamp(extent.high, -kLargest, kLargest);
  if (logarithmic_) {
    low = std::log10(std::max(low, 1e-300));
    high = std::log10(std::max(high, 1e-300));
  }
  // In a narrower range, neighbouring ticks would be equal.
  const double least = std::max(std::abs(low), std::abs(high)) * 1e-9;
  if (!(high - low > least)) {
    const double middle = low + (high - low) / 2;
    const double half = logarithmic_ ? 0.5 : middle == 0 ? 1 : std::abs(middle) * 0.1;
    low = middle - half;
    high = middle + half;
  }
  low_ = low;
  high_ = high;
  if (logarithmic_ && high_ - low_ >= 0.9) {
    tick_decades(whole);
  } else {
    tick_linear(begin, end, whole);
  }
}

void Axis::tick_linear(double begin, double end, bool whole) {
  const auto value = [&](double v) { return logarithmic_ ? std::pow(10, v) : v; };
  const int count = std::max(2, static_cast<int>(std::abs(end - begin) / kPixelsPerTick));
  double low = value(low_), high = value(high_);
  if (whole) {
    const double step = round_step(high - low, count);
    const double floor = std::floor(low / step + 1e-9) * step;
    if (!logarithmic_ || floor > 0) low = floor;
    high = std::ceil(high / step - 1e-9) * step;
    low_ = logarithmic_ ? std::log10(low) : low;
    high_ = logarithmic_ ? std::log10(high) : high;
  }
  const auto ticks = round_ticks(low, high, count);
  const auto labels = tick_labels(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i)
    if (can_show(ticks[i])) ticks_.push_back({pixel(ticks[i]), labels[i]});
}

/// Powers of ten: every n-th if there are many, with 2 and 5 in between if there are few.
void Axis::tick_decades(bool whole) {
  const bool few = high_ - low_ < 2.5;
  constexpr std::array kDigits{1.0, 2.0, 5.0};
  if (whole && !few) {
    low_ = std::floor(low_ + 1e-9);
    high_ = std::ceil(high_ - 1e-9);
  }
  const int first = static_cast<int>(std::floor(low_)), last = static_cast<int>(std::ceil(high_));
  const int room = std::max(2, static_cast<int>(std::abs(end_ - begin_) / kPixelsPerTick * 1.5));
  const int every = std::max(1, (last - first + room - 1) / room);
  for (int decade = first; decade <= last; decade += every) {
    for (const double digit : kDigits) {
      if (digit != 1 && !few) continue;
      const double value = digit * std::pow(10, decade);
      const double at = std::log10(value);
      if (at < low_ - 1e-9 || at > high_ + 1e-9) continue;
      const bool plain = value >= 9.9e-4 && value < 1.1e4;
      ticks_.push_back({pixel(value), plain ? print("%.*g", 6, value)
                                            : shorten_exponent(print("%.*e", 0, value))});
    }
  }
}

bool Axis::can_show(double value) const {
  return std::abs(value) <= kLargest && (!logarithmic_ || value > 0);
}

double Axis::pixel(double value) const {
  const double position = ((logarithmic_ ? std::log10(value) : value) - low_) / (high_ - low_);
  return begin_ + std::clamp(position, -3.0, 4.0) * (end_ - begin_);
}

}  // namespace leeway
