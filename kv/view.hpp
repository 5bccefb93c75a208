#pragma once
// Views of a program's memory: row-major tensors of one of four element types.
//
// Shards keep and update floats, whatever type a view has: push(), set() and init() convert to f32,
// pull() from it. Widening is exact; narrowing rounds to nearest, ties to even, and values
// beyond the range of the type become infinite. To send fewer bytes, use codecs.
#include <cstdint>

#include "tensor/shape.hpp"

namespace leeway::kv {

/// f16: IEEE 754 binary16. bf16: the upper half of an f32.
enum class ElementType : std::uint8_t { f32, f64, bf16, f16 };

struct ConstView {
  ConstView() = default;
  ConstView(const float* floats, Shape extents) : data(floats), shape(extents) {}
  ConstView(const double* doubles, Shape extents)
      : data(doubles), shape(extents), type(ElementType::f64) {}
  ConstView(const void* elements, Shape extents, ElementType element)
      : data(elements), shape(extents), type(element) {}
  /// Requires f32.
  const float* floats() const;

  const void* data = nullptr;
  Shape shape;
  ElementType type = ElementType::f32;
};

struct View {
  View() = default;
  View(float* floats, Shape extents) : data(floats), shape(extents) {}
  View(double* doubles, Shape extents) : data(doubles), shape(extents), type(ElementType::f64) {}
  View(void* elements, Shape extents, ElementType element)
      : data(elements), shape(extents), type(element) {}
  operator ConstView() const { return {data, shape, type}; }
  /// Requires f32.
  float* floats() const;

  void* data = nullptr;
  Shape shape;
  ElementType type = ElementType::f32;
};

/// to (count, f32) = the elements of `from`, of the given type, after the first `first`.
void read(const void* from, ElementType type, std::int64_t first, float* to, std::int64_t count);
/// The elements of `to`, of the given type, after the first `first` = from (count, f32).
void write(void* to, ElementType type, std::int64_t first, const float* from, std::int64_t count);

}  // namespace leeway::kv
