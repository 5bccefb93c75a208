#include "kernels/encoding.hpp"

#include <algorithm>
#include <array>

#include "core/check.hpp"
#include "kernels/accumulate.hpp"
#include "kernels/avx2.hpp"
#include "kernels/convert.hpp"
#include "kernels/quantise.hpp"
#include "kernels/quantise_formulas.hpp"

namespace leeway::kernels {
namespace {

using Kind = Encoding::Kind;

constexpr std::size_t kSection = 1024;  // stays in the L1 cache between two steps

/// Calls handle(begin, count) for each block of `block` values.
template <class Handle>
void for_each_block(std::size_t count, std::size_t block, Handle handle) {
  for (std::size_t begin = 0; begin < count; begin += block)
    handle(begin, std::min(block, count - begin));
}

DType type_of(Kind kind) {
  return kind == Kind::bf16 ? DType::bf16 : DType::f16;
}

void write_f16(std::byte* bytes, const float* values, std::size_t count) {
  std::size_t done = 0;
  if (avx2::is_available())
    done = avx2::narrow_f16(reinterpret_cast<std::uint16_t*>(bytes), values, kLargestF16, count);
  std::array<float, kSection> section;
  for_each_block(count - done, kSection, [&](std::size_t begin, std::size_t here) {
    saturate(section.data(), values + done + begin, kLargestF16, here);
    convert(bytes + 2 * (done + begin), DType::f16, section.data(), DType::f32,
            static_cast<std::int64_t>(here));
  });
}

/// bytes = the encoding of values (count).
void write(std::byte* bytes, const float* values, std::size_t count, const Encoding& encoding) {
  auto* const scales = reinterpret_cast<float*>(bytes);
  std::byte* const codes = bytes + encoding.scale_bytes(count);
  auto* const packed = reinterpret_cast<std::uint8_t*>(codes);
  switch (encoding.kind) {
    case Kind::bf16:
      return convert(bytes, DType::bf16, values, DType::f32, static_cast<std::int64_t>(count));
    case Kind::f16:
      return write_f16(bytes, values, count);
    case Kind::int8:
      return for_each_block(count, Encoding::kInt8Block, [&](std::size_t begin, std::size_t here) {
        scales[begin / Encoding::kInt8Block] =
            quantise_int8(reinterpret_cast<std::int8_t*>(codes) + begin, values + begin, here);
      });
    case Kind::int4:
      return quantise_int4(packed, scales, values, count);
    case Kind::two_bit:
      return quantise_two_bit(packed, values, encoding.threshold, count);
    case Kind::one_bit:
      return for_each_block(
          count, Encoding::kOneBitBlock, [&](std::size_t begin, std::size_t here) {
            quantise_one_bit(packed + begin / 8, scales + begin / Encoding::kOneBitBlock * 2,
                             values + begin, here);
          });
  }
  LW_CHECK(false, static_cast<int>(encoding.kind));
}

void accumulate_half(float* sum, const std::byte* bytes, float scale, std::size_t count,
                     DType type) {
  std::array<float, kSection> section;
  for_each_block(count, kSection, [&](std::size_t begin, std::size_t here) {
    const auto size = static_cast<std::int64_t>(here);
    convert(section.data(), DType::f32, bytes + 2 * begin, type, size);
    accumulate(sum + begin, section.data(), scale, size, Write::add);
  });
}

/// v (count) = scale * values + residual.
void sum_up(float* v, const EncodingBuffers& at) {
  if (v != at.values) {
    if (at.scale == 1)
      std::copy_n(at.values, at.count, v);
    else
      accumulate(v, at.values, at.scale, at.count, Write::assign);
  } else if (at.scale != 1) {
    for (std::int64_t i = 0; i < at.count; ++i) v[i] *= at.scale;
  }
  if (at.residual) accumulate(v, at.residual, 1, at.count, Write::add);
}

}  // namespace

std::size_t Encoding::bytes(std::size_t count) const {
  const auto packed = [&](std::size_t bits) { return (count * bits + 7) / 8; };
  switch (kind) {
    case Kind::bf16:
    case Kind::f16:
      return packed(16);
    case Kind::int8:
      return scale_bytes(count) + packed(8);
    case Kind::int4:
      return scale_bytes(count) + packed(4);
    case Kind::two_bit:
      return packed(2);
    case Kind::one_bit:
      return scale_bytes(count) + packed(1);
  }
  LW_CHECK(false, static_cast<int>(kind));
}

void encode(const EncodingBuffers& at, const Encoding& encoding) {
  const auto count = static_cast<std::size_t>(at.count);
  if (!at.rest_out) {
    LW_CHECK(!at.residual && at.scale == 1, at.scale);
    return write(at.bytes, at.values, count, encoding);
  }
  sum_up(at.rest_out, at);
  write(at.bytes, at.rest_out, count, encoding);
  accumulate_encoded(at.rest_out, at.bytes, -1, count, encoding);
}

void accumulate_encoded(float* sum, const std::byte* bytes, float scale, std::size_t count,
                        const Encoding& encoding) {
  const auto* const scales = reinterpret_cast<const float*>(bytes);
  const std::byte* const codes = bytes + encoding.scale_bytes(count);
  const auto* const packed = reinterpret_cast<const std::uint8_t*>(codes);
  switch (encoding.kind) {
    case Kind::bf16:
    case Kind::f16:
      return accumulate_half(sum, bytes, scale, count, type_of(encoding.kind));
    case Kind::int8:
      return for_each_block(count, Encoding::kInt8Block, [&](std::size_t begin, std::size_t here) {
        accumulate_int8(sum + begin, reinterpret_cast<const std::int8_t*>(codes) + begin,
                        scale * scales[begin / Encoding::kInt8Block], here);
      });
    case Kind::int4:
      return for_each_block(count, Encoding::kInt4Block, [&](std::size_t begin, std::size_t here) {
        accumulate_int4(sum + begin, packed + begin / 2,
                        scale * scales[begin / Encoding::kInt4Block], here);
      });
    case Kind::two_bit:
      return accumulate_two_bit(sum, packed, scale * encoding.threshold, count);
    case Kind::one_bit:
      return for_each_block(
          count, Encoding::kOneBitBlock, [&](std::size_t begin, std::size_t here) {
            const float* const means = scales + begin / Encoding::kOneBitBlock * 2;
            accumulate_one_bit(sum + begin, packed + begin / 8, scale * means[0], scale * means[1],
                               here);
          });
  }
  LW_CHECK(false, static_cast<int>(encoding.kind));
}

}  // namespace leeway::kernels
