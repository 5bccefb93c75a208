#pragma once
// Encodings, counts and values for tests of codecs: whole tiles of a GPU's warps, blocks that end
// within one, and values whose codes are special.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "kernels/encoding.hpp"
#include "tests/kernels/support.hpp"

namespace leeway::test {

struct NamedEncoding {
  std::string name;
  kernels::Encoding encoding;
};

inline std::vector<NamedEncoding> encodings() {
  using Kind = kernels::Encoding::Kind;
  return {{"bf16", {Kind::bf16}},
          {"f16", {Kind::f16}},
          {"int8", {Kind::int8}},
          {"int4", {Kind::int4}},
          {"two_bit", {Kind::two_bit, 0.25f}},
          {"one_bit", {Kind::one_bit}}};
}

inline std::vector<std::int64_t> encoding_counts() {
  return {0,  1,   2,   3,   4,   5,   7,   8,   9,    31,   32,   33,   63,   64,  65,
          66, 127, 128, 129, 255, 256, 257, 511, 1023, 1024, 1025, 1031, 2048, 3000};
}

struct NamedValues {
  std::string name;
  Floats values;
};

/// Values of each kind, `count` of them.
inline std::vector<NamedValues> values_to_encode(std::int64_t count, Rng rng) {
  const auto size = static_cast<std::size_t>(count);
  const Floats random = random_floats(rng, count);
  std::vector<NamedValues> all = {{"random", random},
                                  {"zeros", Floats(size, 0.0f)},
                                  {"negative zeros", Floats(size, -0.0f)},
                                  {"one value", Floats(size, -0.3f)}};
  const auto changed = [&](const std::string& name, auto change) {
    Floats values = random;
    for (float& value : values) value = change(value);
    all.push_back({name, values});
  };
  changed("ties", [](float value) { return std::round(254 * value) / 2; });
  changed("subnormal", [](float value) { return value * 1e-39f; });
  changed("large", [](float value) { return value * 3e38f; });
  changed("of unlike sizes",
          [&](float value) { return std::ldexp(value, static_cast<int>(rng.below(60)) - 40); });
  for (const float broken : {NAN, INFINITY, -INFINITY}) {
    Floats values = random;
    if (count > 0) values[rng.below(size)] = broken;
    all.push_back({"with " + std::to_string(broken), values});
  }
  return all;
}

}  // namespace leeway::test
