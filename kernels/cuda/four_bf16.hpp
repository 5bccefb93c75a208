#pragma once
// FourBf16: four numbers that a thread rounds and stores together.
#include "kernels/convert_formulas.hpp"
#include "kernels/cuda/stream.hpp"

namespace leeway::kernels::cuda {

struct alignas(8) FourBf16 {
  Bf16 x, y, z, w;
};

__device__ inline void round_four(FourBf16& to, float4 from) {
  from_float(to.x, from.x);
  from_float(to.y, from.y);
  from_float(to.z, from.z);
  from_float(to.w, from.w);
}

}  // namespace leeway::kernels::cuda
