#pragma once
// Random values for property tests, including the ends of their ranges. The generated any_* headers
// use them. Call them only inside a property.
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "core/ids.hpp"
#include "core/limits.hpp"
#include "core/time.hpp"

namespace leeway::test {

/// Counts are below this.
inline constexpr std::int64_t kCountEnd = std::int64_t{1} << 62;

// ---- numbers ----

template <std::integral T>
T any_integer(T least, T most) {
  const auto ends = rc::gen::element(least, most);
  const auto all = rc::gen::map(rc::gen::arbitrary<T>(), [=](T value) {
    return value < least || value > most ? least : value;
  });
  return *rc::gen::weightedOneOf<T>({{1, ends}, {4, all}});
}

inline void any(bool& out) {
  out = *rc::gen::arbitrary<bool>();
}
template <std::integral T>
requires(!std::same_as<T, bool>) void any(T& out) {
  out = any_integer<T>(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}
template <std::floating_point T>
void any(T& out) {
  out = *rc::gen::weightedOneOf<T>(
      {{4, rc::gen::arbitrary<T>()},
       {1, rc::gen::element(T{0}, T{-0.0}, std::numeric_limits<T>::max())}});
}
inline void any_count(std::int64_t& out) {
  out = any_integer<std::int64_t>(0, kCountEnd - 1);
}
inline void any(Duration& out) {
  any_count(out.ns);
}
template <class Tag>
void any(Count<Tag>& out) {
  out = Count<Tag>(any_integer<std::int64_t>(0, kCountEnd - 1));
}
template <class Tag, class Rep>
void any(Id<Tag, Rep>& out) {
  out = Id<Tag, Rep>(any_integer<Rep>(0, std::numeric_limits<Rep>::max()));
}

// ---- numbers within limits ----

template <std::integral T, class Least, class Most>
void any_between(T& out, Least least, Most most) {
  out = any_integer<T>(static_cast<T>(least), static_cast<T>(most));
}
template <std::floating_point T, class Least, class Most>
void any_between(T& out, Least least, Most most) {
  const auto share = static_cast<T>(any_integer<int>(0, 1024)) / 1024;
  out = static_cast<T>(least) + share * (static_cast<T>(most) - static_cast<T>(least));
}
template <std::integral T, class Least>
void any_at_least(T& out, Least least) {
  any_between(out, least, std::numeric_limits<T>::max());
}
template <std::floating_point T, class Least>
void any_at_least(T& out, Least least) {
  any(out);
  out = std::max(std::abs(out), static_cast<T>(least));
}
template <std::integral T, class Limit>
void any_below(T& out, Limit limit) {
  any_between(out, 0, limit - 1);
}
template <class Tag, class Rep, class Limit>
void any_below(Id<Tag, Rep>& out, Limit limit) {
  out = Id<Tag, Rep>(any_integer<Rep>(0, static_cast<Rep>(limit - 1)));
}

// ---- other types ----

template <class Enum>
void any_enum(Enum& out, Enum last) {
  out = static_cast<Enum>(*rc::gen::inRange(0, static_cast<int>(last) + 1));
}
/// UTF-8: printable ASCII, quotes, control characters, zero, and a letter outside ASCII.
inline void any(std::string& out) {
  const auto letter = rc::gen::oneOf(
      rc::gen::map(rc::gen::inRange(1, 127),
                   [](int c) { return std::string(1, static_cast<char>(c)); }),
      rc::gen::element<std::string>("\"", "\\", "\n", std::string(1, '\0'), "\xc3\xa9", "="));
  out.clear();
  for (const auto& piece : *rc::gen::container<std::vector<std::string>>(letter)) out += piece;
}
/// Below `end`.
inline std::size_t any_index(std::size_t end) {
  return *rc::gen::inRange<std::size_t>(0, end);
}
/// At most four items, even if `most` is larger.
template <class T, class Item>
void any_list(std::vector<T>& out, Item item, std::size_t most = 4) {
  out.resize(any_index(std::min<std::size_t>(most, 4) + 1));
  for (auto& one : out) item(one);
}
template <class T>
void make_ascending(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace leeway::test
