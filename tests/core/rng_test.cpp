#include "core/rng.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <vector>

using namespace leeway;

namespace {

std::vector<std::uint64_t> first_outputs(Rng rng, int count) {
  std::vector<std::uint64_t> out;
  for (int i = 0; i < count; ++i) out.push_back(rng.next());
  return out;
}

}  // namespace

TEST_CASE("a seed gives the same numbers as in earlier versions") {
  // If these numbers change, recorded seeds no longer repeat their runs.
  CHECK(mix64(0) == 0xe220a8397b1dcdafull);  // SplitMix64's first output from state 0
  CHECK(first_outputs(Rng(1), 3) == std::vector<std::uint64_t>{0xc5883e370b0926c3ull,
                                                               0x021b74b80f71f81cull,
                                                               0x268df06749e5c8ceull});
  CHECK(first_outputs(Rng::stream(1, 2, 3), 2) ==
        std::vector<std::uint64_t>{0x8868024bdbe94281ull, 0x521c08664fffdf8full});
  Rng rng(42);
  std::vector<std::uint64_t> below;
  for (int i = 0; i < 8; ++i) below.push_back(rng.below(10));
  CHECK(below == std::vector<std::uint64_t>{3, 8, 6, 9, 1, 5, 3, 2});
  std::vector<int> cards{0, 1, 2, 3, 4, 5, 6, 7};
  Rng(7).shuffle(std::span(cards));
  CHECK(cards == std::vector<int>{6, 3, 5, 2, 0, 1, 4, 7});
}

TEST_CASE("the generator works in constant expressions") {
  constexpr std::uint64_t drawn = [] {
    Rng rng = Rng::stream(1, 2);
    return rng.below(6);
  }();
  CHECK(drawn < 6);
}

TEST_CASE("streams depend only on seed and purpose, and share no outputs") {
  std::set<std::uint64_t> seen;
  int streams = 0;
  for (const std::uint64_t seed : {1, 2}) {
    for (std::uint64_t a = 0; a < 20; ++a) {
      for (std::uint64_t b = 0; b < 20; ++b, ++streams) {
        const auto outputs = first_outputs(Rng::stream(seed, a, b), 4);
        CHECK(outputs == first_outputs(Rng::stream(seed, a, b), 4));
        seen.insert(outputs.begin(), outputs.end());
      }
    }
  }
  CHECK(seen.size() == static_cast<std::size_t>(4 * streams));
}

TEST_CASE("streams are uncorrelated bit by bit") {
  // Agreements of 64 x 2000 bits between neighbours: 64000 of them, with a deviation of 179.
  for (std::uint64_t a = 0; a < 10; ++a) {
    Rng one = Rng::stream(1, a);
    Rng two = Rng::stream(1, a + 1);
    int equal = 0;
    for (int i = 0; i < 2000; ++i) equal += 64 - __builtin_popcountll(one.next() ^ two.next());
    CHECK(std::abs(equal - 64000) < 6 * 179);
  }
}

TEST_CASE("a copy of a generator continues independently") {
  Rng rng(5);
  rng.next();
  Rng copy = rng;
  const auto expected = first_outputs(rng, 5);
  CHECK(first_outputs(copy, 5) == expected);
}

TEST_CASE("below(n) is less than n") {
  rc::prop("0 <= below(n) < n", [](std::uint64_t seed, std::uint64_t n) {
    Rng rng(seed);
    const std::uint64_t bound = std::max<std::uint64_t>(n, 1);
    for (int i = 0; i < 20; ++i) RC_ASSERT(rng.below(bound) < bound);
  });
  CHECK(Rng(1).below(1) == 0);
}

TEST_CASE("below draws all numbers equally often") {
  for (const std::uint64_t n : {2u, 3u, 7u, 10u, 64u}) {
    std::vector<double> counts(n);
    Rng rng(n);
    const int draws = 2000 * static_cast<int>(n);
    for (int i = 0; i < draws; ++i) ++counts[rng.below(n)];
    double chi_squared = 0;
    for (const double count : counts) chi_squared += (count - 2000) * (count - 2000) / 2000;
    // Mean n - 1, deviation sqrt(2 (n - 1)); seven deviations cannot be chance.
    const double freedom = static_cast<double>(n) - 1;
    CHECK(chi_squared < freedom + 7 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("below has no bias for a large bound that is not a power of two") {
  // Without rejection, scaling 64 bits to n = 3 * 2^62 would draw the multiples of 3 twice as
  // often as the other numbers.
  const std::uint64_t n = 3ull << 62;
  std::array<int, 3> counts{};
  Rng rng(1);
  for (int i = 0; i < 30000; ++i) ++counts[rng.below(n) % 3];
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);
}

TEST_CASE("one_in and uniform have the right frequencies") {
  Rng rng(3);
  int hits = 0;
  double sum = 0;
  bool in_range = true;
  for (int i = 0; i < 40000; ++i) {
    hits += rng.one_in(4) ? 1 : 0;
    const double u = rng.uniform();
    in_range &= u >= 0 && u < 1;
    sum += u;
  }
  CHECK(in_range);
  CHECK(std::abs(hits - 10000) < 600);
  CHECK(std::abs(sum / 40000 - 0.5) < 0.01);
}

TEST_CASE("normal has mean 0, deviation 1 and the right tails") {
  Rng rng(4);
  double sum = 0, squares = 0;
  int beyond_two = 0;
  const int draws = 40000;
  for (int i = 0; i < draws; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  CHECK(std::abs(sum / draws) < 0.03);
  CHECK(std::abs(squares / draws - 1) < 0.05);
  CHECK(std::abs(beyond_two / static_cast<double>(draws) - 0.0455) < 0.006);
}

TEST_CASE("shuffle permutes a list") {
  rc::prop("same items, any order", [](std::uint64_t seed, std::vector<int> items) {
    auto shuffled = items;
    Rng(seed).shuffle(std::span(shuffled));
    RC_ASSERT(std::is_permutation(shuffled.begin(), shuffled.end(), items.begin(), items.end()));
  });
}

TEST_CASE("shuffle draws all permutations equally often") {
  std::map<std::vector<int>, int> counts;
  Rng rng(6);
  for (int i = 0; i < 24000; ++i) {
    std::vector<int> items{0, 1, 2, 3};
    rng.shuffle(std::span(items));
    ++counts[items];
  }
  CHECK(counts.size() == 24);
  for (const auto& [items, count] : counts) CHECK(std::abs(count - 1000) < 200);
}
