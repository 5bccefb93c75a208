#include "core/check.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/linear_products.hpp"
#include "kernels/scratch.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels::cuda {

namespace {

/// (O, I), one number for each precision.
constexpr std::uint64_t kFormId = 0x6c696e65617200;

std::size_t half_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(std::uint16_t);
}
std::size_t aligned_bytes(std::int64_t count) {
  return padded_bytes(half_bytes(count));
}
void round(On on, std::byte* to, const float* from, std::int64_t count, const LinearShape& shape) {
  convert(on, to, half_type(shape.precision), from, DType::f32, count);
}

}  // namespace

PackForm linear_half_form(const LinearShape& shape) {
  LW_CHECK(is_half(shape.precision), name_of(shape.precision));
  return {kFormId + static_cast<std::uint64_t>(shape.precision),
          half_bytes(shape.outputs * shape.inputs)};
}

void linear_half_pack(On on, std::byte* packed, ConstSlices weight, const LinearShape& shape) {
  check_rows(weight, shape.outputs);
  for (const auto& slice : weight)
    round(on, packed + half_bytes(slice.first_row * shape.inputs), slice.data,
          slice.rows * shape.inputs, shape);
}

std::size_t linear_half_scratch_bytes(const LinearShape& shape) {
  return aligned_bytes(shape.batch * shape.inputs) + aligned_bytes(shape.batch * shape.outputs);
}

void linear_half_forward(On on, float* y, const float* x, const std::byte* packed,
                         const float* bias, std::byte* scratch, const LinearShape& shape) {
  round(on, scratch, x, shape.batch * shape.inputs, shape);
  gemm(on, linear_forward_product(shape, shape.outputs), y, scratch, packed);
  if (bias) add_bias(on, y, bias, shape.batch, shape.outputs, shape.outputs);
}

void linear_half_backward(On on, float* dx, Slices dweight, float* dbias, const float* dy,
                          const float* x, const std::byte* packed, std::byte* scratch,
                          const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  if (dbias) column_sums(on, dbias, dy, batch, outputs, outputs);
  std::byte* const rounded_dy = scratch;
  round(on, rounded_dy, dy, batch * outputs, shape);
  if (!dweight.empty()) {
    check_rows(dweight, outputs);
    std::byte* const rounded_x = scratch + aligned_bytes(batch * outputs);
    round(on, rounded_x, x, batch * inputs, shape);
    for (const auto& slice : dweight)
      gemm(on, linear_weight_product(shape, slice.rows), slice.data,
           rounded_dy + half_bytes(slice.first_row), rounded_x);
  }
  if (dx) gemm(on, linear_input_product(shape, outputs, false), dx, rounded_dy, packed);
}

}  // namespace leeway::kernels::cuda
