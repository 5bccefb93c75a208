#include "kernels/softmax_cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.hpp"
#include "kernels/math.hpp"

namespace leeway::kernels {

namespace {

LW_INLINE float max_of(const float* x, std::int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = largest < x[i] ? x[i] : largest;
  return largest;
}

LW_INLINE float sum_exp(const float* x, float largest, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += exp_non_positive(x[i] - largest);
  return sum;
}

LW_INLINE float store_exp(float* e, const float* x, float largest, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = exp_non_positive(x[i] - largest);
    e[i] = value;
    sum += value;
  }
  return sum;
}

LW_INLINE void multiply(float* x, float factor, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

}  // namespace

LW_SIMD ClassLoss softmax_cross_entropy(float* dlogits, const float* logits,
                                        const std::int32_t* labels, std::int64_t batch,
                                        std::int64_t classes, float scale) {
  ClassLoss result;
  if (batch == 0) return result;
  const float share = scale / static_cast<float>(batch);
  double sum_of_losses = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const float* row = logits + b * classes;
    const std::int64_t label = labels[b];
    LW_CHECK(label >= 0 && label < classes, label, classes, b);
    const float largest = max_of(row, classes);
    float sum = 0;
    if (dlogits) {
      float* gradient = dlogits + b * classes;
      sum = store_exp(gradient, row, largest, classes);
      multiply(gradient, share / sum, classes);
      gradient[label] -= share;
    } else {
      sum = sum_exp(row, largest, classes);
    }
    sum_of_losses +=
        std::log(static_cast<double>(sum)) + (static_cast<double>(largest) - row[label]);
    result.correct += std::find(row, row + classes, largest) - row == label;
  }
  result.loss = sum_of_losses / static_cast<double>(batch);
  return result;
}

}  // namespace leeway::kernels
