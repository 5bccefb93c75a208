#pragma once
// Precision of matrix products. Arrays are f32 and products are summed in f32 in any case.
#include <cstdint>
#include <string_view>

namespace leeway {

enum class Precision : std::uint8_t {
  fp32,
  tf32,  // a GPU rounds operands to 10 bits of fraction as it reads them; a CPU computes in fp32
  bf16,  // operands are rounded to bf16 first
  fp16,  // operands are rounded to fp16 first; from 65520 on they become infinite
};

constexpr Precision kPrecisions[] = {Precision::fp32, Precision::tf32, Precision::bf16,
                                     Precision::fp16};

constexpr std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  return "?";
}

/// True if operands are rounded to a type of 16 bits before a product reads them.
constexpr bool is_half(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16;
}

}  // namespace leeway
