#pragma once
// Converts rates and shares to whole nanoseconds. Uses only additions, multiplications and
// divisions, which every processor rounds alike, and no function of libm.
#include <cstdint>

#include "core/time.hpp"

namespace leeway::sim {

/// Rounds to whole nanoseconds, and limits to 30 years.
inline Duration whole(double nanos) {
  constexpr double kMost = 1e18;
  return nanoseconds(static_cast<std::int64_t>((nanos < kMost ? nanos : kMost) + 0.5));
}

/// The time that `amount` takes at `rate` per second.
inline Duration time_of(double amount, double rate) {
  return whole(amount / rate * 1e9);
}

inline Duration scaled(Duration duration, double factor) {
  return whole(static_cast<double>(duration.ns) * factor);
}

}  // namespace leeway::sim
