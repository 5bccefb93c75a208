#include "kernels/encoding.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <span>

#include "tests/kernels/cases/encoding.hpp"
#include "tests/kernels/executors.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

using Kind = kernels::Encoding::Kind;

struct Encoded {
  std::vector<std::byte> bytes;
  Floats rest;
};

/// How a call passes its arrays.
struct Call {
  bool with_residual = false;
  bool in_place = false;
  std::size_t skip = 0;  // floats before the arrays, which misalign them
  float scale = 1;
};

Encoded encode(Executor& executor, const kernels::Encoding& encoding, const Floats& values,
               const Floats& residual, const Call& call) {
  const auto shifted = [&](const Floats& floats) {
    Floats all(call.skip, 7.0f);
    all.insert(all.end(), floats.begin(), floats.end());
    return Array<float>(executor, all);
  };
  auto from = shifted(values), rest = shifted(Floats(values.size(), NAN));
  const auto before = shifted(residual);
  auto bytes = Array<std::byte>::poisoned(executor,
                                          static_cast<std::int64_t>(encoding.bytes(values.size())));
  Array<float>& out = call.in_place ? from : rest;
  executor.encode({.count = std::ssize(values),
                   .bytes = bytes.data(),
                   .rest_out = out.data() + call.skip,
                   .values = from.data() + call.skip,
                   .residual = call.with_residual ? before.data() + call.skip : nullptr,
                   .scale = call.scale},
                  encoding);
  Floats found = out.read();
  for (std::size_t i = 0; i < call.skip; ++i) REQUIRE(found[i] == 7);
  found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(call.skip));
  return {bytes.read(), found};
}

/// The definition, in place and without a residual, on the CPU.
Encoded expected_of(const kernels::Encoding& encoding, const Floats& values, const Floats& residual,
                    const Call& call) {
  Encoded expected{std::vector<std::byte>(encoding.bytes(values.size())), values};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float product = call.scale * values[i];
    expected.rest[i] = call.with_residual ? product + residual[i] : product;
  }
  kernels::encode({.count = std::ssize(values),
                   .bytes = expected.bytes.data(),
                   .rest_out = expected.rest.data(),
                   .values = expected.rest.data()},
                  encoding);
  return expected;
}

float magnitude(float value) {
  return std::isfinite(value) ? std::abs(value) : 0;
}

/// Equal, or both NaN.
bool is_same(float a, float b, float tolerance = 0) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance;
}

std::vector<float> scales_of(const kernels::Encoding& encoding, const std::vector<std::byte>& bytes,
                             std::size_t count) {
  std::vector<float> scales(encoding.scale_bytes(count) / sizeof(float));
  if (!scales.empty()) std::memcpy(scales.data(), bytes.data(), scales.size() * sizeof(float));
  return scales;
}

/// Requires the same bytes, but for the bits of NaN and the last bits of the means of one_bit.
void require_same_bytes(const kernels::Encoding& encoding, const std::vector<std::byte>& found,
                        const std::vector<std::byte>& expected, std::size_t count) {
  REQUIRE(found.size() == expected.size());
  const auto scales = scales_of(encoding, found, count);
  const auto wanted = scales_of(encoding, expected, count);
  const float share = encoding.kind == Kind::one_bit ? 0x1p-13f : 0.0f;
  for (std::size_t i = 0; i < scales.size(); ++i)
    REQUIRE(is_same(scales[i], wanted[i], share * magnitude(wanted[i])));
  const std::size_t first = encoding.scale_bytes(count);
  if (encoding.kind == Kind::bf16 || encoding.kind == Kind::f16) {
    Floats numbers(count, 0.0f), wanted_numbers(count, 0.0f);
    kernels::accumulate_encoded(numbers.data(), found.data(), 1, count, encoding);
    kernels::accumulate_encoded(wanted_numbers.data(), expected.data(), 1, count, encoding);
    for (std::size_t i = 0; i < count; ++i) {
      const bool same_bits = std::equal(found.begin() + 2 * static_cast<std::ptrdiff_t>(i),
                                        found.begin() + 2 * static_cast<std::ptrdiff_t>(i) + 2,
                                        expected.begin() + 2 * static_cast<std::ptrdiff_t>(i));
      REQUIRE((same_bits || (std::isnan(numbers[i]) && std::isnan(wanted_numbers[i]))));
    }
    return;
  }
  REQUIRE(std::equal(found.begin() + static_cast<std::ptrdiff_t>(first), found.end(),
                     expected.begin() + static_cast<std::ptrdiff_t>(first)));
}

/// Without fused multiply-add, the CPU rounds the product of scale and code too.
float rest_tolerance(const kernels::Encoding& encoding, const Floats& values,
                     const Floats& residual) {
  float most = 0;
  for (const Floats* floats : {&values, &residual})
    for (const float value : *floats) most = std::max(most, magnitude(value));
  return most * (encoding.kind == Kind::one_bit ? 0x1p-12f : 0x1p-22f);
}

}  // namespace

TEST_CASE("every executor encodes to the same bytes, for any count and values", "[encoding]") {
  for_each_executor([](Executor& executor) {
    Rng rng(1);
    for (const auto& [name, encoding] : encodings())
      for (const std::int64_t count : encoding_counts())
        for (const auto& [kind, values] : values_to_encode(count, rng)) {
          Call call{.with_residual = rng.one_in(2), .in_place = rng.one_in(2)};
          call.skip = rng.one_in(3) ? rng.below(4) : 0;
          if (rng.one_in(3)) call.scale = 0.3f;
          CAPTURE(name, count, kind, call.with_residual, call.in_place, call.skip, call.scale);
          const Floats residual = random_floats(rng, count, 0.1);
          const Encoded found = encode(executor, encoding, values, residual, call);
          const Encoded expected = expected_of(encoding, values, residual, call);
          require_same_bytes(encoding, found.bytes, expected.bytes, values.size());
          const float tolerance = rest_tolerance(encoding, values, residual);
          for (std::size_t i = 0; i < values.size(); ++i)
            REQUIRE(is_same(found.rest[i], expected.rest[i], tolerance));
          REQUIRE(encode(executor, encoding, values, residual, call).bytes == found.bytes);
        }
  });
}

TEST_CASE("the decoded values and the rest sum up to the values", "[encoding]") {
  for_each_executor([](Executor& executor) {
    Rng rng(2);
    for (const auto& [name, encoding] : encodings())
      for (const std::int64_t count : encoding_counts()) {
        CAPTURE(name, count);
        const Floats values = random_floats(rng, count), residual = random_floats(rng, count);
        Encoded found = encode(executor, encoding, values, residual,
                               {.with_residual = true, .in_place = true, .scale = 2});
        kernels::accumulate_encoded(found.rest.data(), found.bytes.data(), 1, values.size(),
                                    encoding);
        for (std::size_t i = 0; i < values.size(); ++i)
          REQUIRE(found.rest[i] == Approx(2 * values[i] + residual[i]).margin(1e-6));
      }
  });
}

TEST_CASE("without a rest, only the bytes are written", "[encoding]") {
  for_each_executor([](Executor& executor) {
    Rng rng(3);
    for (const auto& [name, encoding] : encodings()) {
      CAPTURE(name);
      const Floats values = random_floats(rng, 1500);
      const Array<float> from(executor, values);
      auto bytes = Array<std::byte>::poisoned(
          executor, static_cast<std::int64_t>(encoding.bytes(values.size())));
      executor.encode({.count = 1500, .bytes = bytes.data(), .values = from.data()}, encoding);
      const Encoded expected = expected_of(encoding, values, {}, {});
      require_same_bytes(encoding, bytes.read(), expected.bytes, values.size());
      REQUIRE(from.read() == values);
    }
  });
}
