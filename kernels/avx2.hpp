#pragma once
// avx2: conversions and codes of few bits with AVX2 and F16C, for processors that have them.
//
// The functions write the bytes of the formulas in convert_formulas.hpp and quantise_formulas.hpp;
// only the sums of quantise_one_bit() have an order of their own.
// Those that return a number of values have handled that many at the beginning of their arrays, in
// whole vectors; the caller handles the rest, and everything on other processors, with the
// formulas.
#include <cstddef>
#include <cstdint>

namespace leeway::kernels::avx2 {

/// Whether this processor has the instructions. Required by all other functions.
inline bool is_available() {
#if defined(LEEWAY_AVX2)  // avx2.cpp is compiled with them
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
                          __builtin_cpu_supports("popcnt");
  return has;
#else
  return false;
#endif
}

/// to (count) = from (count) as bf16.
std::size_t narrow_bf16(std::uint16_t* to, const float* from, std::size_t count);
/// to (count) = from (count) as f16, finite values limited to -most..most.
std::size_t narrow_f16(std::uint16_t* to, const float* from, float most, std::size_t count);

/// The largest of the magnitude_bits() of values (count), a multiple of 32.
std::uint32_t largest(const float* values, std::size_t count);

/// numbers (count) = values * factor, rounded. Requires products from -127.4 to 127.4.
std::size_t quantise_int8(std::int8_t* numbers, const float* values, float factor,
                          std::size_t count);
/// pairs (32 * blocks) = values (64 * blocks) * the factor of the block, rounded. Requires products
/// from -7.4 to 7.4.
void quantise_int4(std::uint8_t* pairs, const float* values, const float* factors,
                   std::size_t blocks);
/// quads (count / 4) = the codes of finite values.
std::size_t quantise_two_bit(std::uint8_t* quads, const float* values, float threshold,
                             std::size_t count);

/// Sums of the values below 0 and of the others, and the number of those below 0.
struct SignSums {
  float below = 0, above = 0;
  std::int32_t negatives = 0;
};
/// signs (count / 8) = the signs of the values. Adds the values to `sums`.
std::size_t quantise_one_bit(std::uint8_t* signs, SignSums& sums, const float* values,
                             std::size_t count);

}  // namespace leeway::kernels::avx2
