#include "kernels/peak.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/simd.hpp"
#include "tensor/blob.hpp"

namespace leeway::kernels {

namespace {

/// Enough independent sums to hide the latency of multiply-adds on two units, few enough to stay in
/// registers.
constexpr int kSums = 12;
constexpr int kWidth = 16;
using Vector [[gnu::vector_size(kWidth * sizeof(float))]] = float;

LW_SIMD void multiply_add(float* out, std::int64_t rounds) {
  Vector sums[kSums];
  Vector factor, term;
  for (int i = 0; i < kWidth; ++i) {
    factor[i] = 0.999f;
    term[i] = 0.001f;
  }
  for (int s = 0; s < kSums; ++s) sums[s] = factor * static_cast<float>(s);
  for (std::int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int s = 0; s < kSums; ++s) sums[s] = sums[s] * factor + term;
  Vector all = sums[0];
  for (int s = 1; s < kSums; ++s) all += sums[s];
  for (int i = 0; i < kWidth; ++i) out[i] = all[i];
}

LW_SIMD void axpy(float* z, const float* x, const float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) z[i] = x[i] + 0.5f * y[i];
}

/// The best of several runs, because other load can only slow a run down.
template <class Work>
double least_seconds(int runs, Work work) {
  double least = 1e9;
  for (int run = 0; run < runs; ++run) {
    const auto began = std::chrono::steady_clock::now();
    work();
    least = std::min(
        least, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  return least;
}

}  // namespace

Peak measure_peak() {
  constexpr std::int64_t kRounds = 1'000'000;
  constexpr std::int64_t kFloats = 16 << 20;
  float sink[kWidth];
  const double sums = least_seconds(8, [&] { multiply_add(sink, kRounds); });
  Blob x = Blob::floats(kFloats), y = Blob::floats(kFloats), z = Blob::floats(kFloats);
  for (Blob* blob : {&x, &y, &z}) std::fill_n(blob->mutable_floats(), kFloats, sink[0]);
  const double stream =
      least_seconds(8, [&] { axpy(z.mutable_floats(), x.as_floats(), y.as_floats(), kFloats); });
  return {2.0 * kSums * kWidth * static_cast<double>(kRounds) / sums,
          3.0 * sizeof(float) * static_cast<double>(kFloats) / stream};
}

}  // namespace leeway::kernels
