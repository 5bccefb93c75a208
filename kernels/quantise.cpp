#include "kernels/quantise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/avx2.hpp"
#include "kernels/quantise_formulas.hpp"
#include "kernels/simd.hpp"

namespace leeway::kernels {
namespace {

using avx2::SignSums;

/// The bits of the largest magnitude; those of NaN or infinity if a value is.
LW_SIMD std::uint32_t largest_by_formula(const float* values, std::size_t count) {
  std::uint32_t bits = 0;
#pragma omp simd reduction(max : bits)
  for (std::size_t i = 0; i < count; ++i) bits = std::max(bits, magnitude_bits(values[i]));
  return bits;
}

std::uint32_t largest(const float* values, std::size_t count) {
  return avx2::is_available() && count % 32 == 0 ? avx2::largest(values, count)
                                                 : largest_by_formula(values, count);
}

/// Whether values of a block with this scale, times its inverse, need no limit: with a subnormal
/// scale, they can be beyond the levels.
bool is_regular(float scale) {
  return std::isnormal(scale);
}

bool is_finite(std::uint32_t magnitude) {
  return std::bit_cast<float>(magnitude) < INFINITY;
}

LW_SIMD void int8_by_formula(std::int8_t* __restrict numbers, const float* __restrict values,
                             float factor, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<std::int8_t>(nearest_level(values[i] * factor, 127));
}

/// Values that are coded before their codes are packed.
constexpr std::size_t kPart = 256;

/// Calls code(begin, count) for all parts. Whole parts get a constant, which makes their loops
/// faster.
template <std::size_t Part, class Code>
LW_INLINE void for_each_part(std::size_t count, Code code) {
  std::size_t begin = 0;
  for (; begin + Part <= count; begin += Part)
    code(begin, std::integral_constant<std::size_t, Part>());
  if (begin < count) code(begin, count - begin);
}

LW_SIMD void int4_by_formula(std::uint8_t* __restrict pairs, const float* __restrict values,
                             float factor, std::size_t count) {
  for_each_part<64>(count, [=](std::size_t begin, auto here) LW_INLINE_LAMBDA {
    std::uint8_t numbers[64] = {};
#pragma omp simd
    for (std::size_t i = 0; i < here; ++i)
      numbers[i] = static_cast<std::uint8_t>(nearest_level(values[begin + i] * factor, 7) & 15);
    std::uint16_t words[32];
    std::memcpy(words, numbers, sizeof words);
#pragma omp simd
    for (std::size_t i = 0; i < (here + 1) / 2; ++i)
      pairs[begin / 2 + i] = static_cast<std::uint8_t>(words[i] | words[i] >> 4);
  });
}

LW_SIMD void two_bit_by_formula(std::uint8_t* __restrict quads, const float* __restrict values,
                                float threshold, std::size_t count) {
  for_each_part<kPart>(count, [=](std::size_t begin, auto here) LW_INLINE_LAMBDA {
    std::uint8_t codes[kPart] = {};
#pragma omp simd
    for (std::size_t i = 0; i < here; ++i)
      codes[i] = static_cast<std::uint8_t>(two_bit_code(values[begin + i], threshold));
    std::uint32_t words[kPart / 4];
    std::memcpy(words, codes, sizeof codes);
    // The product moves the code in byte i from bit 8 i to bit 24 + 2 i, and others elsewhere.
#pragma omp simd
    for (std::size_t i = 0; i < (here + 3) / 4; ++i)
      quads[begin / 4 + i] = static_cast<std::uint8_t>(words[i] * 0x01041040u >> 24);
  });
}

LW_SIMD void one_bit_by_formula(std::uint8_t* __restrict signs, SignSums& sums,
                                const float* __restrict values, std::size_t count) {
  float below = 0, above = 0;
  std::int32_t negatives = 0;
#pragma omp simd reduction(+ : below, above, negatives)
  for (std::size_t i = 0; i < count; ++i) {
    const bool negative = values[i] < 0;
    below += negative ? values[i] : 0.0f;
    above += negative ? 0.0f : values[i];
    negatives += negative ? 1 : 0;
  }
  sums.below += below;
  sums.above += above;
  sums.negatives += negatives;
  for_each_part<kPart>(count, [=](std::size_t begin, auto here) LW_INLINE_LAMBDA {
    std::uint8_t bits[kPart] = {};
#pragma omp simd
    for (std::size_t i = 0; i < here; ++i) bits[i] = values[begin + i] < 0 ? 0 : 1;
    std::uint64_t words[kPart / 8];
    std::memcpy(words, bits, sizeof bits);
    // The product moves the bit of byte i from bit 8 i to bit 56 + i, and others elsewhere.
    for (std::size_t i = 0; i < (here + 7) / 8; ++i)
      signs[begin / 8 + i] = static_cast<std::uint8_t>(words[i] * 0x0102040810204080u >> 56);
  });
}

// Eight lanes. Arithmetic instead of comparisons, which are slow without AVX2.
using Floats [[gnu::vector_size(32)]] = float;
using Words [[gnu::vector_size(32)]] = std::uint32_t;
constexpr Words kLane = {0, 1, 2, 3, 4, 5, 6, 7};

/// The float in all lanes, as bits.
LW_INLINE Words all(float value) {
  return Words{} + std::bit_cast<std::uint32_t>(value);
}

/// sum[0..8) += the floats with these bits.
LW_INLINE void add_lanes(float* sum, Words bits) {
  Floats lanes;
  std::memcpy(&lanes, sum, sizeof lanes);
  lanes += std::bit_cast<Floats>(bits);
  std::memcpy(sum, &lanes, sizeof lanes);
}

}  // namespace

LW_SIMD void saturate(float* __restrict out, const float* __restrict values, float most,
                      std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) out[i] = saturated(values[i], most);
}

float quantise_int8(std::int8_t* numbers, const float* values, std::size_t count) {
  const std::uint32_t bits = largest(values, count);
  const float scale = scale_of(bits, 127), factor = inverse(scale, std::bit_cast<float>(bits));
  std::size_t done = 0;
  if (avx2::is_available() && is_regular(scale))
    done = avx2::quantise_int8(numbers, values, factor, count);
  if (done < count) int8_by_formula(numbers + done, values + done, factor, count - done);
  return scale;  // not finite if a value is not; times 0, it is NaN
}

LW_SIMD void accumulate_int8(float* __restrict sum, const std::int8_t* __restrict numbers,
                             float scale, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) sum[i] += scale * static_cast<float>(numbers[i]);
}

void quantise_int4(std::uint8_t* pairs, float* scales, const float* values, std::size_t count) {
  constexpr std::size_t kBlock = 64, kBlocks = 16;  // in the L1 cache until they are coded
  for (std::size_t begin = 0; begin < count; begin += kBlocks * kBlock) {
    const std::size_t end = std::min(count, begin + kBlocks * kBlock);
    const std::size_t blocks = (end - begin + kBlock - 1) / kBlock;
    std::array<float, kBlocks> factors;
    bool are_regular = avx2::is_available() && (end - begin) % kBlock == 0;
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::size_t at = begin + block * kBlock;
      const std::uint32_t bits = largest(values + at, std::min(kBlock, end - at));
      const float scale = scale_of(bits, 7);
      scales[at / kBlock] = scale;
      factors[block] = inverse(scale, std::bit_cast<float>(bits));
      are_regular = are_regular && is_regular(scale);
    }
    if (are_regular) {
      avx2::quantise_int4(pairs + begin / 2, values + begin, factors.data(), blocks);
      continue;
    }
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::size_t at = begin + block * kBlock;
      int4_by_formula(pairs + at / 2, values + at, factors[block], std::min(kBlock, end - at));
    }
  }
}

LW_SIMD void accumulate_int4(float* __restrict sum, const std::uint8_t* __restrict pairs,
                             float scale, std::size_t count) {
  const std::size_t whole = count / 2;
  // Shifts up and down extend the sign of four bits.
#pragma omp simd
  for (std::size_t i = 0; i < whole; ++i) {
    const auto pair = static_cast<std::int32_t>(pairs[i]);
    sum[2 * i] +=
        scale *
        static_cast<float>(static_cast<std::int32_t>(static_cast<std::uint32_t>(pair) << 28) >> 28);
    sum[2 * i + 1] +=
        scale *
        static_cast<float>(static_cast<std::int32_t>(static_cast<std::uint32_t>(pair) << 24) >> 28);
  }
  if (count % 2 == 1)
    sum[count - 1] +=
        scale *
        static_cast<float>(
            static_cast<std::int32_t>(static_cast<std::uint32_t>(pairs[whole]) << 28) >> 28);
}

void quantise_two_bit(std::uint8_t* quads, const float* values, float threshold,
                      std::size_t count) {
  constexpr std::size_t kSection = 1024;  // stays in the L1 cache
  for (std::size_t begin = 0; begin < count; begin += kSection) {
    const std::size_t here = std::min(kSection, count - begin);
    std::size_t done = 0;
    if (avx2::is_available() && is_finite(largest(values + begin, here)))
      done = avx2::quantise_two_bit(quads + begin / 4, values + begin, threshold, here);
    two_bit_by_formula(quads + (begin + done) / 4, values + begin + done, threshold, here - done);
  }
}

LW_SIMD void accumulate_two_bit(float* __restrict sum, const std::uint8_t* __restrict quads,
                                float threshold, std::size_t count) {
  const Words plus = all(threshold), minus = all(-threshold), broken = all(NAN);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint16_t packed = 0;
    std::memcpy(&packed, quads + i / 4, sizeof packed);
    const Words codes = (Words{} + std::uint32_t{packed}) >> 2 * kLane;
    const Words first = -(codes & 1), second = -(codes >> 1 & 1);
    add_lanes(sum + i,
              (first & ~second & plus) | (~first & second & minus) | (first & second & broken));
  }
  for (; i < count; ++i) sum[i] += two_bit_value(quads[i / 4] >> 2 * (i % 4) & 3u, threshold);
}

void quantise_one_bit(std::uint8_t* signs, float* means, const float* values, std::size_t count) {
  SignSums sums;
  std::size_t done = 0;
  if (avx2::is_available()) done = avx2::quantise_one_bit(signs, sums, values, count);
  one_bit_by_formula(signs + done / 8, sums, values + done, count - done);
  const auto positives = static_cast<std::int32_t>(count) - sums.negatives;
  means[0] = sums.negatives > 0 ? sums.below / static_cast<float>(sums.negatives) : 0.0f;
  means[1] = positives > 0 ? sums.above / static_cast<float>(positives) : 0.0f;
}

LW_SIMD void accumulate_one_bit(float* __restrict sum, const std::uint8_t* __restrict signs,
                                float negative, float positive, std::size_t count) {
  const Words above = all(positive), below = all(negative);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const Words is_above = -((Words{} + std::uint32_t{signs[i / 8]}) >> kLane & 1);
    add_lanes(sum + i, (is_above & above) | (~is_above & below));
  }
  for (; i < count; ++i) sum[i] += signs[i / 8] >> (i % 8) & 1u ? positive : negative;
}

}  // namespace leeway::kernels
