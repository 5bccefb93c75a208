#pragma once
// quantise: floats as integers of few bits, and sums of such arrays.
//
// A function that returns a scale or means chooses them for its values: the codecs call it for each
// block (policies/codec). Values that are not finite give a scale that is not, so that the receiver
// gets no finite numbers instead.
#include <cstddef>
#include <cstdint>

namespace leeway::kernels {

/// out (count) = values, finite ones from -most to most.
void saturate(float* out, const float* values, float most, std::size_t count);

/// numbers (count) = values / scale, rounded to nearest, from -127 to 127. Returns the scale: the
/// largest absolute value / 127, or 0.
float quantise_int8(std::int8_t* numbers, const float* values, std::size_t count);
/// sum (count) += scale * numbers.
void accumulate_int8(float* sum, const std::int8_t* numbers, float scale, std::size_t count);

/// Like quantise_int8(), for blocks of 64 values, the last one shorter: numbers from -7 to 7, two
/// in each byte, the first in the lower bits. pairs: (count + 1) / 2 bytes; scales: one for each
/// block.
void quantise_int4(std::uint8_t* pairs, float* scales, const float* values, std::size_t count);
void accumulate_int4(float* sum, const std::uint8_t* pairs, float scale, std::size_t count);

/// 1 for values from `threshold` on, 2 for values up to -threshold, else 0; four in each byte, the
/// first in the lowest bits. quads: (count + 3) / 4 bytes.
void quantise_two_bit(std::uint8_t* quads, const float* values, float threshold, std::size_t count);
/// sum (count) += threshold for 1, -threshold for 2; NaN for 3, the code of values that are not
/// finite.
void accumulate_two_bit(float* sum, const std::uint8_t* quads, float threshold, std::size_t count);

/// The signs, 1 for values from 0 on, eight in each byte, the first in the lowest bit. signs:
/// (count + 7) / 8 bytes. means: of the values below 0, and of the others; 0 where there are none.
void quantise_one_bit(std::uint8_t* signs, float means[2], const float* values, std::size_t count);
/// sum (count) += the mean of each sign.
void accumulate_one_bit(float* sum, const std::uint8_t* signs, float negative, float positive,
                        std::size_t count);

}  // namespace leeway::kernels
