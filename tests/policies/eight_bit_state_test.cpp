#include "policies/optimizer/eight_bit_state.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/rng.hpp"

namespace leeway {
namespace {

std::vector<float> random_state(StateRange range, std::size_t count) {
  Rng rng(count);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(std::exp(-14 * rng.uniform()));  // six decades
    if (range == StateRange::any && rng.one_in(2)) value = -value;
  }
  return values;
}

std::vector<std::byte> packed(StateRange range, const std::vector<float>& values) {
  std::vector<std::byte> bytes(eight_bit_size(values.size()));
  pack_state(range, values, bytes);
  return bytes;
}

std::vector<float> unpacked(StateRange range, const std::vector<std::byte>& bytes,
                            std::size_t count) {
  std::vector<float> values(count);
  unpack_state(range, bytes, values);
  return values;
}

}  // namespace

TEST_CASE("state of 8 bits has small errors in the first decades, and keeps signs") {
  const StateRange range = GENERATE(StateRange::any, StateRange::not_negative);
  for (const std::size_t count : {1u, 100u, 2048u, 2049u, 5000u}) {
    const auto values = random_state(range, count);
    const auto kept = unpacked(range, packed(range, values), count);
    // Half a step of the decade: 0.9 / 64 or 0.9 / 128 of the scale in the first.
    const double step = range == StateRange::any ? 0.9 / 64 : 0.9 / 128;
    for (std::size_t i = 0; i < count; ++i) {
      const double error = std::abs(kept[i] - values[i]), size = std::abs(values[i]);
      CHECK(error <= 0.6 * step * (size > 0.09 ? 1 : size > 0.009 ? 0.2 : 0.04));
      CHECK((kept[i] == 0 || std::signbit(kept[i]) == std::signbit(values[i])));
    }
  }
}

TEST_CASE("unpacked state packs into the same bytes") {
  const StateRange range = GENERATE(StateRange::any, StateRange::not_negative);
  for (const std::size_t count : {1u, 2048u, 70'000u}) {
    const auto bytes = packed(range, random_state(range, count));
    CHECK(packed(range, unpacked(range, bytes, count)) == bytes);
  }
}

TEST_CASE("all 256 values are used") {
  const StateRange range = GENERATE(StateRange::any, StateRange::not_negative);
  std::vector<float> values(2048);
  std::set<float> found;
  for (int scale = 0; scale < 28; ++scale) {  // 2^-27 to 1
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double share = (static_cast<double>(i) + 1) / static_cast<double>(values.size());
      const double sign = range == StateRange::any && i % 2 == 1 ? -1 : 1;
      values[i] = static_cast<float>(sign * std::ldexp(share, -scale));
    }
    values.front() = 1;  // the scale
    for (const float value : unpacked(range, packed(range, values), values.size()))
      found.insert(value);
  }
  if (range == StateRange::not_negative) found.insert(0);  // only for 0 itself
  CHECK(found.size() >= 255);
}

TEST_CASE("a second moment above 0 never becomes 0, and 0 stays 0") {
  const std::vector<float> values = {1, 1e-30f, 0};
  const auto kept = unpacked(StateRange::not_negative, packed(StateRange::not_negative, values), 3);
  CHECK(kept[0] == 1);
  CHECK(kept[1] > 0);
  CHECK(kept[2] == 0);
  const std::vector<float> zeros(100);
  CHECK(unpacked(StateRange::any, packed(StateRange::any, zeros), 100) == zeros);
}

TEST_CASE("state that is not finite does not become finite") {
  for (const float broken : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> values(2049, 1.0f);
    values[7] = broken;
    const auto kept = unpacked(StateRange::any, packed(StateRange::any, values), values.size());
    CHECK(std::isnan(kept[7]));
    CHECK(kept[2048] == 1);  // of another block
  }
}

}  // namespace leeway
