#include "kernels/sigmoid_cross_entropy.hpp"

#include <algorithm>

#include "kernels/sigmoid_cross_entropy_formula.hpp"

namespace leeway::kernels {

namespace {

struct Sums {
  float loss = 0;
  std::int32_t correct = 0;
};

LW_SIMD Sums sum_of_losses(const float* y, const float* t, std::int64_t count) {
  float loss = 0;
  std::int32_t correct = 0;
#pragma omp simd reduction(+ : loss, correct)
  for (std::int64_t i = 0; i < count; ++i) {
    const SigmoidLoss at = sigmoid_loss(y[i], t[i]);
    loss += at.loss;
    correct += at.correct;
  }
  return {loss, correct};
}

LW_SIMD void gradients(float* dy, const float* y, const float* t, float share, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dy[i] = share * sigmoid_loss(y[i], t[i]).gradient;
}

}  // namespace

ClassLoss sigmoid_cross_entropy(float* dy, const float* y, const float* t, std::int64_t count,
                                float scale) {
  ClassLoss result;
  if (count == 0) return result;
  constexpr std::int64_t kSection = 1024;  // a section is summed in float, the total in double
  for (std::int64_t begin = 0; begin < count; begin += kSection) {
    const std::int64_t n = std::min(kSection, count - begin);
    const Sums sums = sum_of_losses(y + begin, t + begin, n);
    result.loss += static_cast<double>(sums.loss);
    result.correct += sums.correct;
    if (dy) gradients(dy + begin, y + begin, t + begin, scale / static_cast<float>(count), n);
  }
  result.loss /= static_cast<double>(count);
  return result;
}

}  // namespace leeway::kernels
