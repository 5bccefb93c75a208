#pragma once
// Real or virtual time in integer nanoseconds. Roles get it from their host, never from the system.
#include <compare>
#include <cstdint>

namespace leeway {

/// A span of time in nanoseconds.
struct Duration {
  std::int64_t ns = 0;
  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration other) const { return {ns + other.ns}; }
  constexpr Duration operator-(Duration other) const { return {ns - other.ns}; }
  constexpr Duration& operator+=(Duration other) {
    ns += other.ns;
    return *this;
  }
  constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
};

constexpr Duration nanoseconds(std::int64_t n) {
  return {n};
}
constexpr Duration microseconds(std::int64_t n) {
  return {n * 1'000};
}
constexpr Duration milliseconds(std::int64_t n) {
  return {n * 1'000'000};
}
constexpr Duration seconds(std::int64_t n) {
  return {n * 1'000'000'000};
}

/// A point in time: nanoseconds since the run began.
struct Instant {
  std::int64_t ns = 0;
  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Instant operator+(Duration d) const { return {ns + d.ns}; }
  constexpr Duration operator-(Instant other) const { return {ns - other.ns}; }
};

}  // namespace leeway
