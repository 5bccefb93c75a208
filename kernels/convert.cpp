#include "kernels/convert.hpp"

#include <algorithm>
#include <cstring>

#include "core/check.hpp"
#include "kernels/avx2.hpp"
#include "kernels/convert_formulas.hpp"

namespace leeway::kernels {

namespace {

template <class To, class From>
LW_INLINE void stream(To* __restrict to, const From* __restrict from, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) from_float(to[i], to_float(from[i]));
}

LW_SIMD void widen(float* to, const Bf16* from, std::int64_t count) {
  stream(to, from, count);
}
LW_SIMD void widen(float* to, const F16* from, std::int64_t count) {
  stream(to, from, count);
}
LW_SIMD void widen(float* to, const std::int8_t* from, std::int64_t count) {
  stream(to, from, count);
}
LW_SIMD void widen(float* to, const std::int32_t* from, std::int64_t count) {
  stream(to, from, count);
}
LW_SIMD void narrow_by_formula(Bf16* to, const float* from, std::int64_t count) {
  stream(to, from, count);
}
LW_SIMD void narrow_by_formula(F16* to, const float* from, std::int64_t count) {
  stream(to, from, count);
}
LW_INLINE std::size_t narrow_by_avx2(Bf16* to, const float* from, std::size_t count) {
  return avx2::narrow_bf16(&to->bits, from, count);
}
LW_INLINE std::size_t narrow_by_avx2(F16* to, const float* from, std::size_t count) {
  return avx2::narrow_f16(&to->bits, from, INFINITY, count);
}
template <class Half>
void narrow(Half* to, const float* from, std::int64_t count) {
  std::int64_t done = 0;
  if (avx2::is_available())
    done = static_cast<std::int64_t>(narrow_by_avx2(to, from, static_cast<std::size_t>(count)));
  narrow_by_formula(to + done, from + done, count - done);
}
LW_SIMD void narrow(std::int8_t* to, const float* from, std::int64_t count) {
  stream(to, from, count);
}
LW_SIMD void narrow(std::int32_t* to, const float* from, std::int64_t count) {
  stream(to, from, count);
}

void to_floats(float* to, const void* from, DType type, std::int64_t count) {
  switch (type) {
    case DType::bf16:
      return widen(to, static_cast<const Bf16*>(from), count);
    case DType::f16:
      return widen(to, static_cast<const F16*>(from), count);
    case DType::i8:
      return widen(to, static_cast<const std::int8_t*>(from), count);
    case DType::i32:
      return widen(to, static_cast<const std::int32_t*>(from), count);
    case DType::f32:
      break;
  }
  LW_CHECK(false, name_of(type));
}

void from_floats(void* to, DType type, const float* from, std::int64_t count) {
  switch (type) {
    case DType::bf16:
      return narrow(static_cast<Bf16*>(to), from, count);
    case DType::f16:
      return narrow(static_cast<F16*>(to), from, count);
    case DType::i8:
      return narrow(static_cast<std::int8_t*>(to), from, count);
    case DType::i32:
      return narrow(static_cast<std::int32_t*>(to), from, count);
    case DType::f32:
      break;
  }
  LW_CHECK(false, name_of(type));
}

}  // namespace

void convert(void* to, DType to_type, const void* from, DType from_type, std::int64_t count) {
  if (count == 0) return;
  if (to_type == from_type) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(to_type));
    return;
  }
  if (to_type == DType::f32) return to_floats(static_cast<float*>(to), from, from_type, count);
  if (from_type == DType::f32)
    return from_floats(to, to_type, static_cast<const float*>(from), count);
  constexpr std::int64_t kSection = 1024;  // stays in the L1 cache between the two steps
  float section[kSection];
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  for (std::int64_t i = 0; i < count; i += kSection) {
    const std::int64_t n = std::min(kSection, count - i);
    to_floats(section, in + static_cast<std::size_t>(i) * size_of(from_type), from_type, n);
    from_floats(out + static_cast<std::size_t>(i) * size_of(to_type), to_type, section, n);
  }
}

}  // namespace leeway::kernels
