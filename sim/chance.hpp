#pragma once
// From rates and shares to whole nanoseconds. Only additions, multiplications and divisions, which
// every processor rounds alike; no functions of libm.
#include <cstdint>

#include "core/time.hpp"

namespace leeway::sim {

/// The time that `amount` takes at `rate` a second, to the nearest nanosecond.
inline Duration time_of(double amount, double rate) {
  return nanoseconds(static_cast<std::int64_t>(amount / rate * 1e9 + 0.5));
}

inline Duration scaled(Duration duration, double factor) {
  return nanoseconds(static_cast<std::int64_t>(static_cast<double>(duration.ns) * factor + 0.5));
}

}  // namespace leeway::sim
