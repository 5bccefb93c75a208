#pragma once
// Element types of tensors.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leeway {

enum class DType : std::uint8_t { f32, bf16, f16, i8, i32 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i8:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i8:
      return "i8";
    case DType::i32:
      return "i32";
  }
  return "?";
}

}  // namespace leeway
