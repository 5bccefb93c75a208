#include "kv/view.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "kernels/convert.hpp"

namespace leeway::kv {
namespace {

void check_floats(ElementType type) {
  LW_CHECK(type == ElementType::f32, static_cast<int>(type));
}

/// The tensor type of f16 or bf16.
DType half_type(ElementType type) {
  LW_CHECK(type == ElementType::bf16 || type == ElementType::f16, static_cast<int>(type));
  return type == ElementType::bf16 ? DType::bf16 : DType::f16;
}

}  // namespace

const float* ConstView::floats() const {
  check_floats(type);
  return static_cast<const float*>(data);
}

float* View::floats() const {
  check_floats(type);
  return static_cast<float*>(data);
}

void read(const void* from, ElementType type, std::int64_t first, float* to, std::int64_t count) {
  switch (type) {
    case ElementType::f32:
      std::copy_n(static_cast<const float*>(from) + first, count, to);
      return;
    case ElementType::f64: {
      const double* const doubles = static_cast<const double*>(from) + first;
      std::transform(doubles, doubles + count, to, [](double x) { return static_cast<float>(x); });
      return;
    }
    case ElementType::bf16:
    case ElementType::f16:
      kernels::convert(to, DType::f32, static_cast<const std::uint16_t*>(from) + first,
                       half_type(type), count);
      return;
  }
}

void write(void* to, ElementType type, std::int64_t first, const float* from, std::int64_t count) {
  switch (type) {
    case ElementType::f32:
      std::copy_n(from, count, static_cast<float*>(to) + first);
      return;
    case ElementType::f64:
      std::copy_n(from, count, static_cast<double*>(to) + first);
      return;
    case ElementType::bf16:
    case ElementType::f16:
      kernels::convert(static_cast<std::uint16_t*>(to) + first, half_type(type), from, DType::f32,
                       count);
      return;
  }
}

}  // namespace leeway::kv
