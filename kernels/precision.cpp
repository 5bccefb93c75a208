#include "kernels/precision.hpp"

#include "kernels/convert.hpp"
#include "kernels/convert_formulas.hpp"
#include "kernels/onednn.hpp"

namespace leeway::kernels {

namespace {

/// `to` may be `from`.
LW_SIMD void round_floats(float* to, const float* from, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    Bf16 rounded;
    from_float(rounded, from[i]);
    to[i] = to_float(rounded);
  }
}

}  // namespace

bool multiplies_bf16() {
  // oneDNN's names of instruction sets are sets of bits. It also accepts bf16 without AVX512_BF16,
  // but is then slower than in fp32.
  static const bool multiplies = [] {
    constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
  }();
  return multiplies;
}

DType operand_type(Precision precision) {
  return precision == Precision::bf16 && multiplies_bf16() ? DType::bf16 : DType::f32;
}

void round_to_bf16(std::byte* to, DType type, const float* from, std::int64_t count) {
  if (type == DType::bf16) return convert(to, DType::bf16, from, DType::f32, count);
  round_floats(reinterpret_cast<float*>(to), from, count);
}

}  // namespace leeway::kernels
