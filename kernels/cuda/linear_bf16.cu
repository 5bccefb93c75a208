#include "core/check.hpp"
#include "kernels/convert_formulas.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/linear_products.hpp"
#include "kernels/scratch.hpp"
#include "kernels/slices.hpp"

namespace leeway::kernels::cuda {

namespace {

constexpr std::uint64_t kFormId = 0x6c696e656172;  // (O, I)

std::size_t bf16_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(Bf16);
}
std::size_t aligned_bytes(std::int64_t count) {
  return padded_bytes(bf16_bytes(count));
}
void round(On on, std::byte* to, const float* from, std::int64_t count) {
  convert(on, to, DType::bf16, from, DType::f32, count);
}

}  // namespace

PackForm linear_bf16_form(const LinearShape& shape) {
  return {kFormId, bf16_bytes(shape.outputs * shape.inputs)};
}

void linear_bf16_pack(On on, std::byte* packed, ConstSlices weight, const LinearShape& shape) {
  check_rows(weight, shape.outputs);
  for (const auto& slice : weight)
    round(on, packed + bf16_bytes(slice.first_row * shape.inputs), slice.data,
          slice.rows * shape.inputs);
}

std::size_t linear_bf16_scratch_bytes(const LinearShape& shape) {
  return aligned_bytes(shape.batch * shape.inputs) + aligned_bytes(shape.batch * shape.outputs);
}

void linear_bf16_forward(On on, float* y, const float* x, const std::byte* packed,
                         const float* bias, std::byte* scratch, const LinearShape& shape) {
  round(on, scratch, x, shape.batch * shape.inputs);
  gemm(on, linear_forward_product(in_bf16(shape), shape.outputs), y, scratch, packed);
  if (bias) add_bias(on, y, bias, shape.batch, shape.outputs, shape.outputs);
}

void linear_bf16_backward(On on, float* dx, Slices dweight, float* dbias, const float* dy,
                          const float* x, const std::byte* packed, std::byte* scratch,
                          const LinearShape& shape) {
  const auto [batch, inputs, outputs, precision] = shape;
  if (dbias) column_sums(on, dbias, dy, batch, outputs, outputs);
  std::byte* const rounded_dy = scratch;
  round(on, rounded_dy, dy, batch * outputs);
  if (!dweight.empty()) {
    check_rows(dweight, outputs);
    std::byte* const rounded_x = scratch + aligned_bytes(batch * outputs);
    round(on, rounded_x, x, batch * inputs);
    for (const auto& slice : dweight)
      gemm(on, linear_weight_product(in_bf16(shape), slice.rows), slice.data,
           rounded_dy + bf16_bytes(slice.first_row), rounded_x);
  }
  if (dx) gemm(on, linear_input_product(in_bf16(shape), outputs, false), dx, rounded_dy, packed);
}

}  // namespace leeway::kernels::cuda
