#include "kernels/accumulate.hpp"

#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

LW_SIMD void assign_scaled(float* __restrict acc, const float* __restrict g, float scale,
                           std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) acc[i] = scale * g[i];
}

LW_SIMD void add_scaled(float* __restrict acc, const float* __restrict g, float scale,
                        std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) acc[i] += scale * g[i];
}

}  // namespace

void accumulate(float* acc, const float* g, float scale, std::int64_t count, Write write) {
  if (write == Write::assign)
    assign_scaled(acc, g, scale, count);
  else
    add_scaled(acc, g, scale, count);
}

}  // namespace leeway::kernels
