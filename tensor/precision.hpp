#pragma once
// Precision of matrix products. Arrays are f32 and products are summed in f32 in any case.
#include <cstdint>
#include <string_view>

namespace leeway {

enum class Precision : std::uint8_t {
  fp32,
  tf32,  // a GPU rounds operands to 10 bits of fraction as it reads them; a CPU computes in fp32
  bf16,  // operands are rounded to bf16 first
};

constexpr std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
  }
  return "?";
}

}  // namespace leeway
