#pragma once
// ConstTensor: a view of a row-major tensor. Views own nothing; Blob owns the storage.
#include "tensor/device.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace leeway {

struct ConstTensor {
  const void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  Device device;

  const float* floats() const {
    LW_CHECK(dtype == DType::f32, name_of(dtype));
    return static_cast<const float*>(data);
  }
  std::size_t bytes() const { return static_cast<std::size_t>(shape.count()) * size_of(dtype); }
};

}  // namespace leeway
