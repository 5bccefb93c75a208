// Codecs: exact bytes, bounds of the error, error feedback, hostile bytes.
#include "policies/codec/codec.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/rng.hpp"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

const std::vector<plan::Codec> kCodecs = {
    plan::Bf16{},   plan::Fp16{},     plan::Int8{},    plan::Int4{},        plan::TwoBit{0.5},
    plan::OneBit{}, plan::TopK{0.01}, plan::TopK{0.5}, plan::RandomK{0.01}, plan::RandomK{0.25}};
const std::vector<std::size_t> kCounts = {1,  2,   3,   7,   8,    63,   64,
                                          65, 255, 256, 257, 1023, 1025, 5000};

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  // Two populations: most gradients are small, and some are large.
  for (float& value : values)
    value = static_cast<float>((rng.uniform() - 0.5) * (rng.one_in(20) ? 10 : 0.1));
  return values;
}

std::vector<std::byte> encoded(const Codec& codec, std::span<const float> values,
                               std::uint64_t seed = 1) {
  std::vector<std::byte> bytes(codec.size(values.size()), std::byte{0xaa});
  codec.encode(values, seed, bytes);
  return bytes;
}

std::vector<float> decoded(const Codec& codec, std::span<const std::byte> bytes,
                           std::size_t count) {
  std::vector<float> values(count);
  REQUIRE(codec.check(bytes, count));
  codec.decode(bytes, values);
  return values;
}

std::vector<float> passed_on(const Codec& codec, std::span<const float> values,
                             std::uint64_t seed = 1) {
  return decoded(codec, encoded(codec, values, seed), values.size());
}

double norm(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

std::vector<float> difference(std::span<const float> a, std::span<const float> b) {
  std::vector<float> all(a.size());
  std::ranges::transform(a, b, all.begin(), std::minus<>());
  return all;
}

TEST_CASE("an encoding has the same bytes for the same values and seed") {
  const auto codec = make_codec(GENERATE(from_range(kCodecs)));
  CAPTURE(codec->name());
  for (const std::size_t count : kCounts) {
    const auto values = random_values(count, count);
    CHECK(encoded(*codec, values) == encoded(*codec, values));
    CHECK(encoded(*codec, values).size() == codec->size(count));
  }
  CHECK(codec->size(0) == 0);
}

TEST_CASE("sums of encodings are sums of what they decode to") {
  const auto codec = make_codec(GENERATE(from_range(kCodecs)));
  CAPTURE(codec->name());
  for (const std::size_t count : kCounts) {
    const auto a = random_values(count, 1), b = random_values(count, 2);
    std::vector<float> sum(count, 0.0f);
    codec->accumulate(encoded(*codec, a), 0.5f, sum);
    codec->accumulate(encoded(*codec, b), 2, sum);
    const auto of_a = passed_on(*codec, a), of_b = passed_on(*codec, b);
    for (std::size_t i = 0; i < count; ++i)
      CHECK(sum[i] == Approx(0.5 * of_a[i] + 2.0 * of_b[i]).epsilon(1e-5).margin(1e-6));
  }
}

/// The largest error of an element, relative to the largest value near it.
struct ElementBound {
  plan::Codec codec;
  std::size_t block;
  double bound;
};

TEST_CASE("dense codecs keep the bound of each element's error") {
  const auto [spec, block, bound] = GENERATE(
      ElementBound{plan::Bf16{}, 1, 1.0 / 256}, ElementBound{plan::Fp16{}, 1, 1.0 / 2048},
      ElementBound{plan::Int8{}, 256, 1.0 / 253}, ElementBound{plan::Int4{}, 64, 1.0 / 13.9});
  const auto codec = make_codec(spec);
  CAPTURE(codec->name());
  for (const std::size_t count : kCounts) {
    const auto values = random_values(count, count + 100);
    const auto found = passed_on(*codec, values);
    for (std::size_t i = 0; i < count; ++i) {
      double most = 1e-4;  // fp16 is less exact below
      const std::size_t begin = i / block * block, end = std::min(begin + block, count);
      for (std::size_t j = begin; j < end; ++j)
        most = std::max(most, std::abs(static_cast<double>(values[j])));
      CHECK(std::abs(found[i] - values[i]) <= bound * most);
    }
  }
}

TEST_CASE("codecs are contractions") {
  // The error is at most this share of the norm; random_k on average over seeds.
  const auto [spec, share] = GENERATE(table<plan::Codec, double>(
      {{plan::Int8{}, 0.1}, {plan::Int4{}, 0.5}, {plan::OneBit{}, 1.0}, {plan::TopK{0.1}, 0.95}}));
  const auto codec = make_codec(spec);
  CAPTURE(codec->name());
  for (const std::size_t count : kCounts)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto values = random_values(count, seed);
      CHECK(norm(difference(values, passed_on(*codec, values))) <= share * norm(values) + 1e-6);
    }
}

/// Values of any sign and very unlike sizes, zeros among them.
rc::Gen<std::vector<float>> any_values() {
  const auto one = rc::gen::map(
      rc::gen::pair(rc::gen::inRange(-1000, 1000), rc::gen::inRange(-30, 20)),
      [](const auto& parts) { return std::ldexp(static_cast<float>(parts.first), parts.second); });
  return rc::gen::scale(10, rc::gen::nonEmpty(rc::gen::container<std::vector<float>>(one)));
}

TEST_CASE("the error of an encoding is at most the codec's share of the norm, for any values") {
  struct Contraction {
    plan::Codec codec;
    double share;  // of the norm
  };
  const std::vector<Contraction> all = {{plan::Bf16{}, 1.0 / 256},
                                        {plan::Int8{}, std::sqrt(256.0) / 253},
                                        {plan::Int4{}, std::sqrt(64.0) / 13.9},
                                        {plan::OneBit{}, 1},
                                        {plan::TopK{0.25}, std::sqrt(0.75)},
                                        {plan::RandomK{0.25}, 1}};
  for (const auto& [spec, share] : all) {
    const auto codec = make_codec(spec);
    rc::prop(std::string(codec->name()), [&codec = *codec, share = share] {
      const auto values = *any_values();
      const double error = norm(difference(values, passed_on(codec, values)));
      RC_ASSERT(error <= share * norm(values) * (1 + 1e-5) + 1e-30);
    });
  }
}

TEST_CASE("random_k sends one element of each stratum, each equally often, for any values") {
  const auto codec = make_codec(plan::RandomK{0.5});
  rc::prop("over all draws", [&] {
    const auto values = *any_values();
    constexpr int kSeeds = 1000;
    std::vector<float> sent(values.size(), 0.0f);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
      codec->accumulate(encoded(*codec, values, mix64(seed)), 1.0f / kSeeds, sent);
    // One element of each stratum is sent.
    const std::size_t count = values.size(), strata = (count + 1) / 2;
    for (std::size_t stratum = 0; stratum < strata; ++stratum) {
      const std::size_t begin = count * stratum / strata, end = count * (stratum + 1) / strata;
      for (std::size_t i = begin; i < end; ++i)
        RC_ASSERT(std::abs(sent[i] - values[i] / static_cast<float>(end - begin)) <=
                  0.1f * std::abs(values[i]));
    }
  });
}

TEST_CASE("top_k keeps the largest values, and of equal ones the first") {
  const auto codec = make_codec(plan::TopK{0.5});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(passed_on(*codec, std::vector<float>{1, -5, 2, 3}) == std::vector<float>{0, -5, 0, 3});
  CHECK(passed_on(*codec, std::vector<float>{2, 2, -2, 2}) == std::vector<float>{2, 2, 0, 0});
  CHECK(std::isnan(passed_on(*codec, std::vector<float>{7, nan})[1]));
  // Sections of 65,536 send their shares.
  std::vector<float> values(70000, 0.0f);
  std::iota(values.begin(), values.end(), 1.0f);
  const auto found = passed_on(*codec, values);
  CHECK(std::ranges::count(found, 0.0f) == 35000);
  CHECK(found[65535] == 65536);
  CHECK(found[65536] == 0);
  CHECK(found[69999] == 70000);
}

TEST_CASE("random_k sends each element equally often") {
  const plan::RandomK spec{0.25};
  const auto codec = make_codec(spec);
  const std::vector<float> ones(40, 1.0f);
  std::vector<float> counts(40, 0.0f);
  constexpr int kSeeds = 4000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    codec->accumulate(encoded(*codec, ones, seed), 1, counts);
  // Five standard deviations of a binomial distribution.
  const double margin = 5 * std::sqrt(kSeeds * 0.25 * 0.75);
  for (const float count : counts) CHECK(count == Approx(kSeeds * 0.25).margin(margin));
}

TEST_CASE("fp16 sends values beyond its range as its largest") {
  const auto codec = make_codec(plan::Fp16{});
  const std::vector<float> values{70000, -1e30f, 65504, 1};
  CHECK(passed_on(*codec, values) == std::vector<float>{65504, -65504, 65504, 1});
}

TEST_CASE("with error feedback the residual stays bounded") {
  const auto codec = make_codec(GENERATE(from_range(kCodecs)));
  CAPTURE(codec->name());
  constexpr std::size_t kCount = 500;
  constexpr float kMost = 200;  // of 500, the sum of what random_k(0.01) would not have sent
  std::vector<float> residual(kCount, 0.0f);
  for (std::uint64_t step = 0; step < 5000; ++step) {
    auto values = random_values(kCount, step);
    // A constant part: without feedback the error of an element would grow with each step.
    for (std::size_t i = 0; i < kCount; ++i) values[i] += residual[i] + 0.1f;
    const auto sent = passed_on(*codec, values, step);
    residual = difference(values, sent);
    for (const float kept : residual) REQUIRE(std::abs(kept) < kMost);
  }
}

TEST_CASE("bytes of another size, and places that do not ascend, are refused") {
  for (const auto& spec : kCodecs) {
    const auto codec = make_codec(spec);
    auto bytes = encoded(*codec, random_values(300, 1));
    CHECK(codec->check(bytes, 300));
    bytes.push_back({});
    CHECK_THAT(codec->check(bytes, 300).error().text, Contains("bytes, found"));
    bytes.resize(bytes.size() - 2);
    CHECK_FALSE(codec->check(bytes, 300));
    CHECK_FALSE(codec->check({}, 300));
  }
  const auto top = make_codec(plan::TopK{0.01});
  auto bytes = encoded(*top, random_values(300, 1));
  REQUIRE(bytes.size() == 18);
  const auto put = [&](std::uint16_t place) { std::memcpy(&bytes[14], &place, sizeof place); };
  put(300);
  CHECK_THAT(top->check(bytes, 300).error().text, Contains("must ascend"));
  put(0);
  CHECK_FALSE(top->check(bytes, 300));
}

TEST_CASE("any bytes of the right size that pass the check are decoded without harm") {
  Rng rng(7);
  for (const auto& spec : kCodecs) {
    const auto codec = make_codec(spec);
    for (int round = 0; round < 200; ++round) {
      const std::size_t count = 1 + rng.below(2000);
      std::vector<std::byte> bytes(codec->size(count));
      for (auto& one : bytes) one = static_cast<std::byte>(rng.below(256));
      std::vector<float> values(count);
      if (codec->check(bytes, count)) codec->decode(bytes, values);
    }
  }
}

TEST_CASE("a value that is not finite does not become finite") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const plan::Codec& spec :
       std::vector<plan::Codec>{plan::Bf16{}, plan::Fp16{}, plan::Int8{}, plan::Int4{},
                                plan::OneBit{}, plan::TwoBit{}, plan::TopK{1}, plan::RandomK{1}}) {
    const auto codec = make_codec(spec);
    CAPTURE(codec->name());
    for (const float broken : {infinity, -infinity, std::nanf("")}) {
      std::vector<float> values(20, 1.0f);
      values[3] = broken;
      CHECK_FALSE(std::isfinite(passed_on(*codec, values)[3]));
    }
  }
}

}  // namespace
}  // namespace leeway
