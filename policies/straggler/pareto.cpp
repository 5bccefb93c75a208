#include "policies/straggler/pareto.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace leeway {

namespace {

using Wide = unsigned __int128;

constexpr int kBits = 32;                               // fraction bits of logarithms
constexpr std::uint64_t kOne = std::uint64_t{1} << 62;  // 1 with 62 fraction bits
constexpr int kMaxPower = 20;                           // 2^20 is above plan::kMaxSlowdown
static_assert(plan::kMaxSlowdown < (1 << kMaxPower));

constexpr std::uint64_t square_root(Wide x) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 63; bit != 0; bit >>= 1)
    if (Wide{root | bit} * (root | bit) <= x) root |= bit;
  return root;
}

/// 2^(1/2), 2^(1/4), 2^(1/8), ...
constexpr std::array<std::uint64_t, kBits> roots_of_two() {
  std::array<std::uint64_t, kBits> roots{};
  std::uint64_t root = 2 * kOne;
  for (auto& out : roots) out = root = square_root(Wide{root} << 62);
  return roots;
}

/// -log2(n / 2^64), with kBits fraction bits. Requires n > 0.
std::uint64_t minus_log2(std::uint64_t n) {
  const int zeros = std::countl_zero(n);
  std::uint64_t mantissa = n << zeros;  // in [1, 2), with 63 fraction bits
  std::uint64_t fraction = 0;
  for (int i = 0; i < kBits; ++i) {
    const Wide square = Wide{mantissa} * mantissa;  // in [1, 4), with 126 fraction bits
    const bool two = (square >> 127) != 0;
    mantissa = static_cast<std::uint64_t>(square >> (two ? 64 : 63));
    fraction = 2 * fraction + (two ? 1 : 0);
  }
  return (static_cast<std::uint64_t>(zeros + 1) << kBits) - fraction;
}

/// 2^x for an x with kBits fraction bits. Requires x < kMaxPower.
double power_of_two(std::uint64_t x) {
  static constexpr auto kRoots = roots_of_two();
  std::uint64_t power = kOne;
  for (int i = 0; i < kBits; ++i)
    if ((x >> (kBits - 1 - i)) & 1)
      power = static_cast<std::uint64_t>((Wide{power} * kRoots[static_cast<std::size_t>(i)]) >> 62);
  const auto whole = static_cast<double>(std::uint64_t{1} << (x >> kBits));
  return static_cast<double>(power) * 0x1p-62 * whole;
}

}  // namespace

Slowdown ParetoStraggler::next(Instant) {
  const std::uint64_t u = rng_.next() | 1;  // of 2^64; never 0
  const double exponent = static_cast<double>(minus_log2(u)) / spec_.alpha;
  if (exponent >= static_cast<double>(std::uint64_t{kMaxPower} << kBits))
    return {.factor = spec_.cap};
  return {.factor = std::min(power_of_two(static_cast<std::uint64_t>(exponent)), spec_.cap)};
}

void ParetoStraggler::skip(std::uint64_t iterations) {
  while (iterations-- > 0) rng_.next();
}

}  // namespace leeway
