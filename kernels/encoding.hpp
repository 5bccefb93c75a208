#pragma once
// encoding: arrays of floats in fewer bytes, as the dense codecs send them (policies/codec).
//
// Bytes: the scales of all blocks of values (f32), then the codes of all values, the first in the
// lowest bits of a byte. Unused bits of the last byte are 0.
//
// | kind    | block | scales of a block              | code of a value                       |
// |---------|-------|--------------------------------|---------------------------------------|
// | bf16    |       |                                | 16 bits                               |
// | f16     |       |                                | 16 bits; beyond 65,504 the largest    |
// | int8    | 256   | largest magnitude / 127        | 8 bits, -127..127                     |
// | int4    | 64    | largest magnitude / 7          | 4 bits, -7..7                         |
// | two_bit |       |                                | 2 bits: 1 from threshold on, 2 up to  |
// |         |       |                                | -threshold, 3 not finite, else 0      |
// | one_bit | 1,024 | means of negative values and   | 1 bit: 0 below 0, else 1              |
// |         |       | of others; 0 without any       |                                       |
//
// CPU and GPU write the same bytes, with two exceptions. A NaN may have other bits. The means of
// one_bit are sums, whose order depends on the device and the instruction set: they differ by at
// most 2^-13 of their value. Each device repeats its bits.
#include <cstddef>
#include <cstdint>

namespace leeway::kernels {

struct Encoding {
  enum class Kind : std::uint8_t { bf16, f16, int8, int4, two_bit, one_bit };
  Kind kind;
  float threshold = 0;  // of two_bit; positive there

  static constexpr std::size_t kInt8Block = 256, kInt4Block = 64, kOneBitBlock = 1024;

  /// Bytes of the scales of `count` values, where their codes begin. Inline: the module for GPUs
  /// does not link the CPU's kernels.
  std::size_t scale_bytes(std::size_t count) const {
    const auto bytes = [count](std::size_t block, std::size_t scales) {
      return (count + block - 1) / block * scales * sizeof(float);
    };
    switch (kind) {
      case Kind::int8:
        return bytes(kInt8Block, 1);
      case Kind::int4:
        return bytes(kInt4Block, 1);
      case Kind::one_bit:
        return bytes(kOneBitBlock, 2);
      case Kind::bf16:
      case Kind::f16:
      case Kind::two_bit:
        break;
    }
    return 0;
  }
  /// Bytes of an encoding of `count` values.
  std::size_t bytes(std::size_t count) const;
};

/// Arrays for `count` values v = scale * values + residual, rounded after each operation.
struct EncodingBuffers {
  std::int64_t count = 0;
  std::byte* bytes = nullptr;       // out: Encoding::bytes(count), aligned to 16
  float* rest_out = nullptr;        // out: v minus the decoded v; `values`, or overlaps no input
  const float* values = nullptr;    // in
  const float* residual = nullptr;  // in; null: none
  float scale = 1;
};

/// Encodes v, on a GPU in one pass over the arrays. `rest_out` may be null if v is `values`: with
/// scale 1 and without a residual. A block with a value that is not finite gets such a scale, so
/// that it decodes to no finite number.
void encode(const EncodingBuffers& buffers, const Encoding& encoding);

/// sum (count) += scale * the decoded values. Requires `encoding.bytes(count)` bytes.
void accumulate_encoded(float* sum, const std::byte* bytes, float scale, std::size_t count,
                        const Encoding& encoding);

}  // namespace leeway::kernels
