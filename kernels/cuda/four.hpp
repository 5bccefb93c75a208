#pragma once
// Four: four numbers of 16 bits that a thread rounds and stores together.
#include "kernels/convert_formulas.hpp"
#include "kernels/cuda/stream.hpp"

namespace leeway::kernels::cuda {

/// Half: Bf16 or F16.
template <class Half>
struct alignas(8) Four {
  Half x, y, z, w;
};

template <class Half>
__device__ inline void round_four(Four<Half>& to, float4 from) {
  from_float(to.x, from.x);
  from_float(to.y, from.y);
  from_float(to.z, from.z);
  from_float(to.w, from.w);
}

}  // namespace leeway::kernels::cuda
