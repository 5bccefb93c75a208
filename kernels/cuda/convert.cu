#include "core/check.hpp"
#include "kernels/convert_formulas.hpp"
#include "kernels/cuda/families.hpp"
#include "kernels/cuda/four.hpp"
#include "kernels/cuda/parallel.hpp"

namespace leeway::kernels::cuda {

namespace {

template <class To, class From>
struct Convert {
  To* to;
  const From* from;
  __device__ void operator()(std::int64_t i) const { from_float(to[i], to_float(from[i])); }
};

/// The conversion of every product in bf16 or fp16.
template <class Half>
void round_floats(On on, Half* to, const float* from, std::int64_t count) {
  std::int64_t done = 0;
  if (aligned16(from) && reinterpret_cast<std::uintptr_t>(to) % alignof(Four<Half>) == 0) {
    auto* const out = reinterpret_cast<Four<Half>*>(to);
    const auto* const in = reinterpret_cast<const float4*>(from);
    for_each(on, count / 4, [=] __device__(std::int64_t i) { round_four(out[i], in[i]); });
    done = count / 4 * 4;
  }
  for_each(on, count - done, Convert<Half, float>{to + done, from + done});
}

/// Calls f(T()) with the C++ type T of `type`.
template <class F>
void with_number(DType type, F f) {
  switch (type) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(Bf16{});
    case DType::f16:
      return f(F16{});
    case DType::i8:
      return f(std::int8_t{});
    case DType::i32:
      return f(std::int32_t{});
  }
  LW_CHECK(false, static_cast<int>(type));
}

}  // namespace

void convert(On on, void* to, DType to_type, const void* from, DType from_type,
             std::int64_t count) {
  if (count <= 0) return;
  if (to_type == from_type) {
    LW_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * size_of(to_type),
                            cudaMemcpyDeviceToDevice, on.stream));
    return;
  }
  if (to_type == DType::bf16 && from_type == DType::f32)
    return round_floats(on, static_cast<Bf16*>(to), static_cast<const float*>(from), count);
  if (to_type == DType::f16 && from_type == DType::f32)
    return round_floats(on, static_cast<F16*>(to), static_cast<const float*>(from), count);
  with_number(to_type, [&](auto out) {
    with_number(from_type, [&](auto in) {
      using To = decltype(out);
      using From = decltype(in);
      for_each(on, count, Convert<To, From>{static_cast<To*>(to), static_cast<const From*>(from)});
    });
  });
}

}  // namespace leeway::kernels::cuda
