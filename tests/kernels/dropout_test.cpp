#include <catch2/catch.hpp>

#include "kernels/philox.hpp"
#include "tests/kernels/cases/dropout.hpp"
#include "tests/kernels/executors.hpp"
#include "tests/kernels/reference/philox.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

std::vector<std::uint64_t> random_keys(Rng& rng, std::int64_t count) {
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(count));
  for (auto& key : keys) key = rng.next();
  return keys;
}

Floats drop(Executor& executor, const Floats& values, const std::vector<std::uint64_t>& sample_keys,
            const kernels::DropoutShape& shape) {
  const Array<float> x(executor, values);
  const Array<std::uint64_t> keys(executor, sample_keys);
  auto y = Array<float>::poisoned(executor, shape.batch * shape.count);
  executor.dropout(y.data(), x.data(), keys.data(), shape);
  return y.read();
}

std::size_t count_kept(const Floats& y) {
  std::size_t kept = 0;
  for (const float value : y) kept += value != 0;
  return kept;
}

}  // namespace

TEST_CASE("philox reproduces the published test vectors", "[dropout]") {
  struct Known {
    reference::Words counter;
    std::array<std::uint32_t, 2> key;
    reference::Words words;
  };
  const Known known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& [c, key, words] : known) {
    const auto got = kernels::philox({c[0], c[1], c[2], c[3]}, key[0], key[1]);
    REQUIRE(reference::Words{got.a, got.b, got.c, got.d} == words);
    REQUIRE(reference::philox(c, key) == words);
  }
}

TEST_CASE("dropout scales up the elements that the mask keeps, also in place", "[dropout]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const auto& shape : dropout_cases()) {
      CAPTURE(shape.batch, shape.count, shape.probability);
      const Floats x = random_floats(rng, shape.batch * shape.count);
      const auto sample_keys = random_keys(rng, shape.batch);
      std::vector<double> expected;
      for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t i = 0; i < shape.count; ++i) {
          const auto at = static_cast<std::size_t>(b * shape.count + i);
          const bool kept = reference::kept(sample_keys[static_cast<std::size_t>(b)], i, shape);
          expected.push_back(
              kept ? static_cast<double>(x[at]) / (1 - static_cast<double>(shape.probability)) : 0);
        }
      const Floats y = drop(executor, x, sample_keys, shape);
      REQUIRE(worst_error(y, expected) < 1e-6);
      for (std::size_t i = 0; i < y.size(); ++i) REQUIRE((y[i] == 0) == (expected[i] == 0));
      Array<float> in_place(executor, x);
      const Array<std::uint64_t> keys(executor, sample_keys);
      executor.dropout(in_place.data(), in_place.data(), keys.data(), shape);
      REQUIRE(in_place.read() == y);
    }
  });
}

TEST_CASE("dropout keeps the expected share of elements", "[dropout]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    for (const float p : {0.1f, 0.5f, 0.9f}) {
      const kernels::DropoutShape shape{50, 4001, p, 3};
      const double n = 50 * 4001, share = 1 - static_cast<double>(p);
      const Floats ones(50 * 4001, 1.0f);
      const auto kept = static_cast<double>(
          count_kept(drop(executor, ones, random_keys(rng, shape.batch), shape)));
      REQUIRE(std::abs(kept - n * share) < 5 * std::sqrt(n * share * (1 - share)));
    }
  });
}

TEST_CASE("masks differ between samples and between salts", "[dropout]") {
  for_each_executor([](Executor& executor) {
    Rng rng(3);
    const std::vector<std::uint64_t> keys = random_keys(rng, 2);
    const Floats ones(4000, 1.0f);
    const std::int64_t n = 4000;
    const auto agreement = [&](const Floats& a, const Floats& b) {
      double same = 0;
      for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
      return same / static_cast<double>(n);
    };
    const Floats first = drop(executor, ones, {keys[0]}, {1, n, 0.5f, 1});
    REQUIRE(std::abs(agreement(first, drop(executor, ones, {keys[1]}, {1, n, 0.5f, 1})) - 0.5) <
            0.04);
    REQUIRE(std::abs(agreement(first, drop(executor, ones, {keys[0]}, {1, n, 0.5f, 2})) - 0.5) <
            0.04);
    const std::uint64_t high = keys[0] ^ (std::uint64_t{1} << 40);
    REQUIRE(std::abs(agreement(first, drop(executor, ones, {high}, {1, n, 0.5f, 1})) - 0.5) < 0.04);
  });
}

TEST_CASE("forward, backward and every split of a batch use the same mask", "[dropout]") {
  for_each_executor([](Executor& executor) {
    Rng rng(4);
    const kernels::DropoutShape shape{5, 137, 0.4f, 9};
    const auto keys = random_keys(rng, 5);
    const Floats x = random_floats(rng, 5 * 137), dy = random_floats(rng, 5 * 137);
    const Floats y = drop(executor, x, keys, shape), dx = drop(executor, dy, keys, shape);
    for (std::size_t i = 0; i < y.size(); ++i) REQUIRE((y[i] == 0) == (dx[i] == 0));
    Floats pieces;
    for (const std::size_t samples : {2, 3}) {
      const std::size_t begin = pieces.size() / 137;
      const Floats piece =
          drop(executor,
               Floats(x.begin() + static_cast<std::ptrdiff_t>(begin * 137),
                      x.begin() + static_cast<std::ptrdiff_t>((begin + samples) * 137)),
               {keys.begin() + static_cast<std::ptrdiff_t>(begin),
                keys.begin() + static_cast<std::ptrdiff_t>(begin + samples)},
               {static_cast<std::int64_t>(samples), 137, 0.4f, 9});
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    }
    REQUIRE(pieces == y);
  });
}

TEST_CASE("dropout zeroes a dropped NaN and propagates a kept one", "[dropout]") {
  for_each_executor([](Executor& executor) {
    const kernels::DropoutShape shape{1, 300, 0.5f, 0};
    const Floats x(300, std::numeric_limits<float>::quiet_NaN());
    const Floats y = drop(executor, x, {77}, shape);
    for (std::int64_t i = 0; i < 300; ++i) {
      const float value = y[static_cast<std::size_t>(i)];
      REQUIRE((reference::kept(77, i, shape) ? std::isnan(value) : value == 0));
    }
  });
}
