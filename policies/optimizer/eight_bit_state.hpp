#pragma once
// Optimizer state in 8 bits (Dettmers, Lewis, Shleifer, Zettlemoyer, "8-bit Optimizers via
// Block-wise Quantization", ICLR 2022, sections 2.1 and 2.2).
//
// Each 2,048 values share a scale, their value with the largest magnitude. A byte then names one of
// 256 fixed values from -1 to 1, or from 0 to 1 for state that is never negative: seven decades, of
// which a larger one has twice as many values. Unpacked state packs into the same bytes. In state
// that is never negative, a value above 0 stays above 0, because updates divide by its root.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/blob.hpp"

namespace leeway {

enum class StateRange : std::uint8_t { any, not_negative };

/// Bytes of `count` values.
std::size_t eight_bit_size(std::size_t count);
/// Requires eight_bit_size(values.size()) bytes. A block with a value that is not finite unpacks
/// into NaN.
void pack_state(StateRange range, std::span<const float> values, std::span<std::byte> bytes);
void unpack_state(StateRange range, std::span<const std::byte> bytes, std::span<float> values);

/// The same for `count` floats in host memory.
Blob pack_state(StateRange range, const Blob& values, std::int64_t count);
Blob unpack_state(StateRange range, const Blob& packed, std::int64_t count);

}  // namespace leeway
