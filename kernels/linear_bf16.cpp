#include "kernels/linear_bf16.hpp"

#include "kernels/linear_products.hpp"
#include "kernels/scratch.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels {

namespace {

constexpr std::uint64_t kFormId = 0x6c696e65617231;  // (O, I)

std::size_t operand_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(operand_type(Precision::bf16));
}
std::size_t aligned_bytes(std::int64_t count) {
  return padded_bytes(operand_bytes(count));
}

void round_operands(std::byte* to, const float* from, std::int64_t count) {
  round_to_bf16(to, operand_type(Precision::bf16), from, count);
}

}  // namespace

PackForm linear_bf16_form(const LinearShape& shape) {
  return {kFormId, operand_bytes(shape.outputs * shape.inputs)};
}

void linear_bf16_pack(std::byte* packed, ConstSlices weight, const LinearShape& shape) {
  check_rows(weight, shape.outputs);
  for (const auto& slice : weight)
    round_operands(packed + operand_bytes(slice.first_row * shape.inputs), slice.data,
                   slice.rows * shape.inputs);
}

std::size_t linear_bf16_scratch_bytes(const LinearShape& shape) {
  return aligned_bytes(shape.batch * shape.inputs) + aligned_bytes(shape.batch * shape.outputs);
}

void linear_bf16_forward(float* y, const float* x, const std::byte* packed, const float* bias,
                         std::byte* scratch, const LinearShape& shape) {
  round_operands(scratch, x, shape.batch * shape.inputs);
  GemmShape product = linear_forward_product(in_bf16(shape), shape.outputs);
  product.with_bias = bias != nullptr;
  gemm(product, y, scratch, packed, bias);
}

void linear_bf16_backward(float* dx, Slices dweight, float* dbias, const float* dy, const float* x,
                          const std::byte* packed, std::byte* scratch, const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  if (dbias) column_sums(dbias, dy, batch, outputs, outputs);
  std::byte* const rounded_dy = scratch;
  round_operands(rounded_dy, dy, batch * outputs);
  if (!dweight.empty()) {
    check_rows(dweight, outputs);
    std::byte* const rounded_x = scratch + aligned_bytes(batch * outputs);
    round_operands(rounded_x, x, batch * inputs);
    for (const auto& slice : dweight)
      gemm(linear_weight_product(in_bf16(shape), slice.rows), slice.data,
           rounded_dy + operand_bytes(slice.first_row), rounded_x);
  }
  if (dx) gemm(linear_input_product(in_bf16(shape), outputs, false), dx, rounded_dy, packed);
}

}  // namespace leeway::kernels
