#include "kernels/avx2.hpp"

#if defined(LEEWAY_AVX2)

#include <immintrin.h>

#include <cmath>

namespace leeway::kernels::avx2 {
namespace {

__m256i bits_at(const float* values) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
}

void store(void* to, __m256i words) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), words);
}

/// Asks for the values that follow soon. The hardware's own prefetches come too late for loops that
/// read a block twice.
void prefetch(const float* values) {
  constexpr std::size_t kAhead = 512;
  _mm_prefetch(reinterpret_cast<const char*>(values + kAhead), _MM_HINT_T0);
}

/// The low halves of 16 words, in order.
__m256i pack_halves(__m256i first, __m256i second) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(first, second), 0xd8);
}

/// The bytes of four vectors of words that two packs have interleaved, in order.
__m256i in_order(__m256i bytes) {
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/// 32 words from -128 to 127 as bytes, in order.
__m256i pack_bytes(__m256i a, __m256i b, __m256i c, __m256i d) {
  return in_order(_mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)));
}

/// Eight bf16 in words: to nearest, ties to even; a NaN becomes quiet.
__m256i round_bf16(const float* values) {
  const __m256i bits = bits_at(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 floats = _mm256_castsi256_ps(bits);
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(floats, floats, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}

/// Eight values, finite ones limited to -most..most.
__m256 saturated(const float* values, float most) {
  const __m256 floats = _mm256_loadu_ps(values);
  // If one operand is a NaN, min and max give the second operand: a NaN stays.
  const __m256 raised = _mm256_max_ps(_mm256_set1_ps(-most), floats);
  const __m256 limited = _mm256_min_ps(_mm256_set1_ps(most), raised);
  const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), floats);
  const __m256 is_infinite = _mm256_cmp_ps(size, _mm256_set1_ps(INFINITY), _CMP_EQ_OQ);
  return _mm256_blendv_ps(limited, floats, is_infinite);
}

/// 32 values * factor, rounded to nearest, ties to even.
__m256i levels(const float* values, __m256 factor) {
  const auto eight = [&](int at) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(values + at), factor));
  };
  return pack_bytes(eight(0), eight(8), eight(16), eight(24));
}

/// The lower four bits of 64 bytes, two in each byte.
__m256i pack_nibbles(__m256i first, __m256i second) {
  const auto pairs = [](__m256i bytes) {
    const __m256i nibbles = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    return _mm256_maddubs_epi16(nibbles, _mm256_set1_epi16(0x1001));
  };
  return _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs(first), pairs(second)), 0xd8);
}

/// A byte for each of 32 values: -1 if the comparison with the limit is true, else 0.
template <int Comparison>
__m256i compared(const float* values, __m256 limit) {
  const auto eight = [&](int at) {
    return _mm256_castps_si256(_mm256_cmp_ps(_mm256_loadu_ps(values + at), limit, Comparison));
  };
  return pack_bytes(eight(0), eight(8), eight(16), eight(24));
}

/// The codes of 32 values, a byte for each.
__m256i two_bit_codes(const float* values, __m256 plus, __m256 minus) {
  const __m256i ones = compared<_CMP_GE_OQ>(values, plus);
  const __m256i twos = compared<_CMP_LE_OQ>(values, minus);
  return _mm256_or_si256(_mm256_and_si256(ones, _mm256_set1_epi8(1)),
                         _mm256_and_si256(twos, _mm256_set1_epi8(2)));
}

/// The codes of 32 bytes, four in each word.
__m256i quads_of(__m256i codes) {
  const __m256i pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x0401));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00100001));
}

float sum_of(__m256 lanes) {
  float each[8], sum = 0;
  _mm256_storeu_ps(each, lanes);
  for (float lane : each) sum += lane;
  return sum;
}

}  // namespace

std::size_t narrow_bf16(std::uint16_t* to, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16)
    store(to + i, pack_halves(round_bf16(from + i), round_bf16(from + i + 8)));
  return i;
}

std::size_t narrow_f16(std::uint16_t* to, const float* from, float most, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(saturated(from + i, most), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

std::uint32_t largest(const float* values, std::size_t count) {
  __m256i most[4] = {};
  for (std::size_t i = 0; i < count; i += 32) {
    prefetch(values + i);
    prefetch(values + i + 16);
    for (std::size_t k = 0; k < 4; ++k)
      most[k] = _mm256_max_epu32(
          most[k], _mm256_and_si256(bits_at(values + i + 8 * k), _mm256_set1_epi32(0x7fffffff)));
  }
  const __m256i all =
      _mm256_max_epu32(_mm256_max_epu32(most[0], most[1]), _mm256_max_epu32(most[2], most[3]));
  __m128i half = _mm_max_epu32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}

std::size_t quantise_int8(std::int8_t* numbers, const float* values, float factor,
                          std::size_t count) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) store(numbers + i, levels(values + i, _mm256_set1_ps(factor)));
  return i;
}

void quantise_int4(std::uint8_t* pairs, const float* values, const float* factors,
                   std::size_t blocks) {
  for (std::size_t block = 0; block < blocks; ++block, values += 64) {
    const __m256 factor = _mm256_set1_ps(factors[block]);
    store(pairs + 32 * block, pack_nibbles(levels(values, factor), levels(values + 32, factor)));
  }
}

std::size_t quantise_two_bit(std::uint8_t* quads, const float* values, float threshold,
                             std::size_t count) {
  const __m256 plus = _mm256_set1_ps(threshold), minus = _mm256_set1_ps(-threshold);
  std::size_t i = 0;
  for (; i + 128 <= count; i += 128) {
    const auto part = [&](std::size_t at) {
      return quads_of(two_bit_codes(values + i + at, plus, minus));
    };
    const __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(part(0), part(32)),
                                              _mm256_packus_epi32(part(64), part(96)));
    store(quads + i / 4, in_order(bytes));
  }
  return i;
}

std::size_t quantise_one_bit(std::uint8_t* signs, SignSums& sums, const float* values,
                             std::size_t count) {
  __m256 below[2] = {}, above[2] = {};
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    prefetch(values + i);
    std::uint32_t negatives = 0;
    for (int k = 0; k < 2; ++k) {
      const __m256 eight = _mm256_loadu_ps(values + i + 8 * k);
      const __m256 is_below = _mm256_cmp_ps(eight, _mm256_setzero_ps(), _CMP_LT_OQ);
      below[k] = _mm256_add_ps(below[k], _mm256_and_ps(is_below, eight));
      above[k] = _mm256_add_ps(above[k], _mm256_andnot_ps(is_below, eight));
      negatives |= static_cast<std::uint32_t>(_mm256_movemask_ps(is_below)) << 8 * k;
    }
    signs[i / 8] = static_cast<std::uint8_t>(~negatives);
    signs[i / 8 + 1] = static_cast<std::uint8_t>(~negatives >> 8);
    sums.negatives += _mm_popcnt_u32(negatives);
  }
  sums.below += sum_of(_mm256_add_ps(below[0], below[1]));
  sums.above += sum_of(_mm256_add_ps(above[0], above[1]));
  return i;
}

}  // namespace leeway::kernels::avx2

#else  // no processor for which is_available()

namespace leeway::kernels::avx2 {

std::size_t narrow_bf16(std::uint16_t*, const float*, std::size_t) {
  return 0;
}
std::size_t narrow_f16(std::uint16_t*, const float*, float, std::size_t) {
  return 0;
}
std::uint32_t largest(const float*, std::size_t) {
  return 0;
}
std::size_t quantise_int8(std::int8_t*, const float*, float, std::size_t) {
  return 0;
}
void quantise_int4(std::uint8_t*, const float*, const float*, std::size_t) {}
std::size_t quantise_two_bit(std::uint8_t*, const float*, float, std::size_t) {
  return 0;
}
std::size_t quantise_one_bit(std::uint8_t*, SignSums&, const float*, std::size_t) {
  return 0;
}

}  // namespace leeway::kernels::avx2

#endif
