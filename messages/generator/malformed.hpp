#pragma once
// Checks of a message during decoding.
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>

#include "core/limits.hpp"
#include "core/text.hpp"

namespace leeway::wire {

/// Thrown while a message is read; decode turns it into an Error. The text names the field, the
/// value found and the allowed values.
struct Malformed {
  std::string text;
};

template <class... Values>
void require(bool condition, const Values&... values) {
  if (!condition) [[unlikely]]
    throw Malformed{concat(values...)};
}

/// "data" and "classes is 0" make "data.classes is 0"; "data" and " is too large" need no dot.
inline std::string in_place(const std::string& place, const std::string& text) {
  const bool joined = text.starts_with(' ') || text.starts_with(':');
  return concat(place, joined ? "" : ".", text);
}

/// Runs `read` and adds the field's name to its errors.
template <class Read>
void in_field(const char* label, Read read) {
  try {
    read();
  } catch (Malformed& malformed) {
    malformed.text = in_place(label, malformed.text);
    throw;
  }
}

// ---- limits of a number; +value prints a byte as a number ----

template <class T, class Limit>
void require_at_least(T value, Limit least, const char* field) {
  if constexpr (std::floating_point<T>)
    require(std::isfinite(value) && value >= least, field, " is ", value, ", must be ", least,
            " or more");
  else
    require(value >= static_cast<T>(least), field, " is ", +value, ", must be ", least, " or more");
}
template <class T, class Limit>
void require_at_most(T value, Limit most, const char* field) {
  require(value <= static_cast<T>(most), field, " is ", +value, ", must be at most ", most);
}
template <class T, class Least, class Most>
void require_between(T value, Least least, Most most, const char* field) {
  require(value >= static_cast<T>(least) && value <= static_cast<T>(most), field, " is ", +value,
          ", must be ", least, " to ", most);
}
template <class T, class Limit>
void require_above(T value, Limit limit, const char* field) {
  require(value > static_cast<T>(limit), field, " is ", +value, ", must be above ", limit);
}
template <class T, class Limit>
void require_below(T value, Limit limit, const char* field) {
  require(value < static_cast<T>(limit), field, " is ", +value, ", must be below ", limit);
}
inline void require_finite(double value, const char* field) {
  require(std::isfinite(value), field, " is ", value, ", must be finite");
}

/// A count is 0 or more and below 2^62.
inline void require_count(std::int64_t value, const char* field) {
  require(value >= 0 && value < limits::kCountEnd, field, " is ", value, ", must be 0 or more");
}

// ---- lists ----

template <class List>
void require_items(const List& list, std::size_t most, const char* field) {
  require(list.size() <= most, field, " has ", list.size(), " entries, must be at most ", most);
}
template <class List>
void require_ascending(const List& list, const char* field) {
  for (std::size_t i = 1; i < list.size(); ++i)
    require(list[i - 1] < list[i], field, " must be ascending, ", list[i], " comes after ",
            list[i - 1]);
}

}  // namespace leeway::wire
