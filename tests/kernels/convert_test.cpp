#include <bit>
#include <catch2/catch.hpp>

#include "kernels/convert.hpp"
#include "kernels/convert_formulas.hpp"
#include "tests/kernels/executors.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// The definition of a 16-bit type: bits of the fraction and bias of the exponent.
struct Narrow {
  DType type;
  int fraction;
  int bias;

  int exponent_mask() const { return (1 << (15 - fraction)) - 1; }
  bool special(std::uint16_t bits) const {
    return ((bits >> fraction) & exponent_mask()) == exponent_mask();
  }
  bool is_nan(std::uint16_t bits) const {
    return special(bits) && (bits & ((1 << fraction) - 1)) != 0;
  }
  double value(std::uint16_t bits) const {
    const int exponent = (bits >> fraction) & exponent_mask(), rest = bits & ((1 << fraction) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (special(bits)) return rest ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(rest, 1 - bias - fraction);
    return sign * std::ldexp((1 << fraction) + rest, exponent - bias - fraction);
  }
};

constexpr Narrow kBf16{DType::bf16, 7, 127}, kF16{DType::f16, 10, 15};

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

template <class To, class From>
std::vector<To> converted(Executor& executor, DType to_type, DType from_type,
                          const std::vector<From>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Array<From> from(executor, values);
  auto to = Array<To>::poisoned(executor, count);
  executor.convert(to.data(), to_type, from.data(), from_type, count);
  return to.read();
}

std::vector<std::uint16_t> narrowed(Executor& executor, const Narrow& narrow, const Floats& from) {
  return converted<std::uint16_t>(executor, narrow.type, DType::f32, from);
}

Floats widened(Executor& executor, const Narrow& narrow, const std::vector<std::uint16_t>& from) {
  return converted<float>(executor, DType::f32, narrow.type, from);
}

}  // namespace

TEST_CASE("every bf16 and f16 pattern widens to its value and narrows back", "[convert]") {
  for_each_executor([](Executor& executor) {
    for (const Narrow& narrow : {kBf16, kF16}) {
      const auto patterns = all_patterns();
      const Floats wide = widened(executor, narrow, patterns);
      const auto back = narrowed(executor, narrow, wide);
      for (const std::uint16_t bits : patterns) {
        if (narrow.is_nan(bits)) {
          REQUIRE(std::isnan(wide[bits]));
          REQUIRE(narrow.is_nan(back[bits]));
          REQUIRE((back[bits] & 0x8000) == (bits & 0x8000));
        } else {
          REQUIRE(static_cast<double>(wide[bits]) == narrow.value(bits));
          REQUIRE(std::signbit(wide[bits]) == ((bits & 0x8000) != 0));
          REQUIRE(back[bits] == bits);
        }
      }
    }
  });
}

TEST_CASE("floats round to the nearest bf16 and f16, ties to even", "[convert]") {
  for_each_executor([](Executor& executor) {
    for (const Narrow& narrow : {kBf16, kF16}) {
      Floats middles, below, above;
      std::vector<std::uint16_t> lower;
      for (int sign : {0, 0x8000})
        for (int i = 0; !narrow.special(static_cast<std::uint16_t>(i + 1)); ++i) {
          const auto bits = static_cast<std::uint16_t>(i | sign);
          const double middle =
              (narrow.value(bits) + narrow.value(static_cast<std::uint16_t>(bits + 1))) / 2;
          lower.push_back(bits);
          middles.push_back(static_cast<float>(middle));  // exact: needs only one more bit
          below.push_back(std::nextafter(middles.back(), 0.0f));
          above.push_back(std::nextafter(middles.back(), sign ? -INFINITY : INFINITY));
        }
      const auto at = narrowed(executor, narrow, middles),
                 under = narrowed(executor, narrow, below);
      const auto over = narrowed(executor, narrow, above);
      for (std::size_t i = 0; i < lower.size(); ++i) {
        REQUIRE(at[i] == static_cast<std::uint16_t>(lower[i] + (lower[i] & 1)));
        REQUIRE(under[i] == lower[i]);
        REQUIRE(over[i] == lower[i] + 1);
      }
    }
  });
}

TEST_CASE("floats too large for bf16 and f16 become infinite, too small ones 0", "[convert]") {
  for_each_executor([](Executor& executor) {
    REQUIRE(narrowed(executor, kF16, {65504, 65519.99f, 65520, -65520, 1e30f, INFINITY}) ==
            std::vector<std::uint16_t>{0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x7c00, 0x7c00});
    REQUIRE(narrowed(executor, kF16, {0x1p-25f, -0x1p-25f, 0x1.8p-25f, 1e-40f, -0.0f}) ==
            std::vector<std::uint16_t>{0, 0x8000, 1, 0, 0x8000});
    REQUIRE(narrowed(executor, kBf16, {std::numeric_limits<float>::max(), -INFINITY, -0.0f}) ==
            std::vector<std::uint16_t>{0x7f80, 0xff80, 0x8000});
    // A NaN whose payload is only in the truncated half.
    const auto nan = narrowed(executor, kBf16, {std::bit_cast<float>(0x7f800001u)})[0];
    REQUIRE(kBf16.is_nan(nan));
  });
}

TEST_CASE("the processor's conversion to f16 gives the bits of the formula", "[convert]") {
  Floats values;
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 9973)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  std::vector<kernels::F16> by_formula(values.size()), converted(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) kernels::from_float(by_formula[i], values[i]);
  kernels::convert(converted.data(), DType::f16, values.data(), DType::f32,
                   static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(converted[i].bits == by_formula[i].bits);
}

TEST_CASE("conversions to integers round to nearest, ties to even, and saturate", "[convert]") {
  for_each_executor([](Executor& executor) {
    const Floats x = {0.5f, 1.5f,  -0.5f, -1.5f,         2.4999f,       126.6f,         127.6f, 128,
                      -128, -129,  1e30f, -1e30f,        INFINITY,      -INFINITY,      NAN,    3,
                      -7,   0.49f, -2.5f, 2147483520.0f, 2147483648.0f, -2147483648.0f, -3e9f};
    REQUIRE(converted<std::int8_t>(executor, DType::i8, DType::f32, x) ==
            std::vector<std::int8_t>{0,   2,    0, -2, 2,  127, 127, 127, -128, -128, 127, -128,
                                     127, -128, 0, 3,  -7, 0,   -2,  127, 127,  -128, -128});
    constexpr std::int32_t kMost = 2147483647, kLeast = -kMost - 1;
    REQUIRE(converted<std::int32_t>(executor, DType::i32, DType::f32, x) ==
            std::vector<std::int32_t>{0,    2,    0,     -2,         2,     127,    128,   128,
                                      -128, -129, kMost, kLeast,     kMost, kLeast, 0,     3,
                                      -7,   0,    -2,    2147483520, kMost, kLeast, kLeast});
  });
}

TEST_CASE("every pair of types converts by way of f32, for any count", "[convert]") {
  for_each_executor([](Executor& executor) {
    constexpr DType kAll[] = {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i32};
    Rng rng(1);
    for (const std::int64_t count : {0, 1, 15, 1023, 1024, 1025, 3000}) {
      Floats whole(static_cast<std::size_t>(count));  // exact in all types
      for (float& value : whole) value = static_cast<float>(rng.below(255)) - 127;
      for (const DType from_type : kAll)
        for (const DType to_type : kAll) {
          CAPTURE(count, name_of(from_type), name_of(to_type));
          const auto bytes = [&](DType type) {
            return Array<std::byte>::poisoned(executor,
                                              count * static_cast<std::int64_t>(size_of(type)));
          };
          const Array<float> numbers(executor, whole);
          auto from = bytes(from_type), to = bytes(to_type);
          auto back = Array<float>::poisoned(executor, count);
          executor.convert(from.data(), from_type, numbers.data(), DType::f32, count);
          executor.convert(to.data(), to_type, from.data(), from_type, count);
          executor.convert(back.data(), DType::f32, to.data(), to_type, count);
          REQUIRE(back.read() == whole);
        }
    }
    const std::vector<std::int32_t> large = {16777217, -2147483647};  // not exact in f32
    REQUIRE(converted<std::int32_t>(executor, DType::i32, DType::i32, large) == large);
  });
}
