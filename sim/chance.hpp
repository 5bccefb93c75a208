#pragma once
// From rates and shares to whole nanoseconds. Only additions, multiplications and divisions, which
// every processor rounds alike; no functions of libm.
#include <cstdint>

#include "core/time.hpp"

namespace leeway::sim {

/// Whole nanoseconds, and at most thirty years: beyond all that a run can take.
inline Duration whole(double nanos) {
  constexpr double kMost = 1e18;
  return nanoseconds(static_cast<std::int64_t>((nanos < kMost ? nanos : kMost) + 0.5));
}

/// The time that `amount` takes at `rate` a second, to the nearest nanosecond.
inline Duration time_of(double amount, double rate) {
  return whole(amount / rate * 1e9);
}

inline Duration scaled(Duration duration, double factor) {
  return whole(static_cast<double>(duration.ns) * factor);
}

}  // namespace leeway::sim
