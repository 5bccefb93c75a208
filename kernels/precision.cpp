#include "kernels/precision.hpp"

#include "core/check.hpp"
#include "kernels/convert.hpp"
#include "kernels/convert_formulas.hpp"
#include "kernels/onednn.hpp"

namespace leeway::kernels {

namespace {

/// to = from, rounded to Half. `to` may be `from`.
template <class Half>
LW_INLINE void round_each(float* to, const float* from, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    Half rounded;
    from_float(rounded, from[i]);
    to[i] = to_float(rounded);
  }
}

LW_SIMD void round_to_bf16(float* to, const float* from, std::int64_t count) {
  round_each<Bf16>(to, from, count);
}
LW_SIMD void round_to_f16(float* to, const float* from, std::int64_t count) {
  round_each<F16>(to, from, count);
}

}  // namespace

bool multiplies_bf16() {
  // oneDNN also accepts bf16 without AVX512_BF16, but is then slower than in fp32.
  static const bool multiplies = onednn::has_instructions(dnnl::cpu_isa::avx512_core_bf16);
  return multiplies;
}

DType operand_type(Precision precision) {
  return precision == Precision::bf16 && multiplies_bf16() ? DType::bf16 : DType::f32;
}

void round_operands(std::byte* to, DType type, const float* from, std::int64_t count,
                    Precision precision) {
  LW_CHECK(is_half(precision), name_of(precision));
  if (type != DType::f32) {
    LW_CHECK(type == half_type(precision), name_of(type), name_of(precision));
    return convert(to, type, from, DType::f32, count);
  }
  auto* const rounded = reinterpret_cast<float*>(to);
  if (precision == Precision::fp16) return round_to_f16(rounded, from, count);
  round_to_bf16(rounded, from, count);
}

}  // namespace leeway::kernels
