#pragma once
// RoundSize: the number of pushes that close a round.
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace leeway {

class RoundSize {
 public:
  /// The pushes of all workers.
  constexpr RoundSize() = default;
  /// The pushes of all workers but `spare`, and at least one.
  static constexpr RoundSize all_but(std::uint32_t spare) { return {Kind::all_but, spare}; }
  /// `count` pushes, or those of all workers if there are fewer. Requires 1 or more.
  static constexpr RoundSize at_least(std::uint32_t count) { return {Kind::at_least, count}; }

  /// Whether a round can close without some pushes, which are then dropped.
  constexpr bool drops() const { return kind_ == Kind::at_least || number_ > 0; }
  /// For a round in which `live` workers have samples.
  constexpr std::size_t of(std::size_t live) const {
    if (kind_ == Kind::at_least) return std::min<std::size_t>(number_, live);
    return live > number_ ? live - number_ : 1;
  }
  /// The most pushes that a round of `workers` drops.
  constexpr std::size_t most_dropped(std::size_t workers) const { return workers - of(workers); }

 private:
  enum class Kind : std::uint8_t { all_but, at_least };
  constexpr RoundSize(Kind kind, std::uint32_t number) : kind_(kind), number_(number) {}

  Kind kind_ = Kind::all_but;
  std::uint32_t number_ = 0;
};

}  // namespace leeway
