#pragma once
// Seeded random numbers. The distributions are Leeway's own, so that every processor and standard
// library draws the same integers.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace leeway {

/// One step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): mixes a 64-bit state into a random
/// number.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// xoshiro256** (Blackman, Vigna, ACM TOMS 2021), seeded by SplitMix64. Copies continue
/// independently.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) {
    for (auto& word : state_) word = seed = mix64(seed);
  }

  /// An independent stream for the purpose (a, b).
  static constexpr Rng stream(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
    return Rng(mix64(mix64(mix64(seed) ^ a) ^ b));
  }

  constexpr std::uint64_t next() {
    const std::uint64_t result = rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, n), without bias. Requires n > 0.
  constexpr std::uint64_t below(std::uint64_t n) {
    const std::uint64_t reject = (0 - n) % n;  // Lemire's threshold
    for (;;) {
      const auto product = static_cast<unsigned __int128>(next()) * n;
      if (static_cast<std::uint64_t>(product) >= reject)
        return static_cast<std::uint64_t>(product >> 64);
    }
  }

  /// True once in `n` draws on average. Requires n > 0.
  constexpr bool one_in(std::uint64_t n) { return below(n) == 0; }

  /// Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Standard normal, by Marsaglia's polar method. It calls libm, whose results differ between
  /// libraries: use it for weights and data, not for decisions about events.
  double normal() {
    for (;;) {
      const double u = 2 * uniform() - 1;
      const double v = 2 * uniform() - 1;
      const double s = u * u + v * v;
      if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
    }
  }

  template <class T>
  constexpr void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  static constexpr std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace leeway
