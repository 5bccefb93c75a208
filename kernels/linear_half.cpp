#include "kernels/linear_half.hpp"

#include "core/check.hpp"
#include "kernels/linear_products.hpp"
#include "kernels/scratch.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels {

namespace {

/// (O, I), one number for each precision.
constexpr std::uint64_t kFormId = 0x6c696e65617231;

std::size_t operand_bytes(const LinearShape& shape, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(operand_type(shape.precision));
}
std::size_t aligned_bytes(const LinearShape& shape, std::int64_t count) {
  return padded_bytes(operand_bytes(shape, count));
}

void round(std::byte* to, const float* from, std::int64_t count, const LinearShape& shape) {
  round_operands(to, operand_type(shape.precision), from, count, shape.precision);
}

}  // namespace

PackForm linear_half_form(const LinearShape& shape) {
  LW_CHECK(is_half(shape.precision), name_of(shape.precision));
  return {kFormId + static_cast<std::uint64_t>(shape.precision),
          operand_bytes(shape, shape.outputs * shape.inputs)};
}

void linear_half_pack(std::byte* packed, ConstSlices weight, const LinearShape& shape) {
  check_rows(weight, shape.outputs);
  for (const auto& slice : weight)
    round(packed + operand_bytes(shape, slice.first_row * shape.inputs), slice.data,
          slice.rows * shape.inputs, shape);
}

std::size_t linear_half_scratch_bytes(const LinearShape& shape) {
  return aligned_bytes(shape, shape.batch * shape.inputs) +
         aligned_bytes(shape, shape.batch * shape.outputs);
}

void linear_half_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                         std::byte* scratch, const LinearShape& shape) {
  round(scratch, x, shape.batch * shape.inputs, shape);
  GemmShape product = linear_forward_product(shape, shape.outputs);
  product.with_bias = bias != nullptr;
  gemm(product, y, scratch, packed, bias);
}

void linear_half_backward(float* dx, Slices dweight, float* dbias, const float* dy, const float* x,
                          const std::byte* packed, std::byte* scratch, const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  if (dbias) column_sums(dbias, dy, batch, outputs, outputs);
  std::byte* const rounded_dy = scratch;
  round(rounded_dy, dy, batch * outputs, shape);
  if (!dweight.empty()) {
    check_rows(dweight, outputs);
    std::byte* const rounded_x = scratch + aligned_bytes(shape, batch * outputs);
    round(rounded_x, x, batch * inputs, shape);
    for (const auto& slice : dweight)
      gemm(linear_weight_product(shape, slice.rows), slice.data,
           rounded_dy + operand_bytes(shape, slice.first_row), rounded_x);
  }
  if (dx) gemm(linear_input_product(shape, outputs, false), dx, rounded_dy, packed);
}

}  // namespace leeway::kernels
