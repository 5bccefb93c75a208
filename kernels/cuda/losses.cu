// Losses: each block writes its partial sum to scratch, and one block adds them up in order.
#include <limits>

#include "kernels/cuda/families.hpp"
#include "kernels/cuda/reduce.hpp"
#include "kernels/math.hpp"
#include "kernels/sigmoid_cross_entropy_formula.hpp"

namespace leeway::kernels::cuda {

namespace {

constexpr unsigned kMostParts = 512;
static_assert(kMostParts * sizeof(ClassLoss) <= On::kScratchBytes);

/// parts[block] = sum over the threads of this block.
__device__ void store_part(ClassLoss* parts, double loss, std::int64_t correct) {
  loss = block_sum(loss);
  correct = block_sum(correct);
  if (threadIdx.x == 0) {
    parts[blockIdx.x].loss = loss;
    parts[blockIdx.x].correct = correct;
  }
}

/// result = sum of the parts, with the loss divided by `count`; zeros if there are no parts.
__global__ void __launch_bounds__(kThreads)
    finish_kernel(ClassLoss* result, const ClassLoss* parts, unsigned count_of_buckets,
                  std::int64_t count) {
  double loss = 0;
  std::int64_t correct = 0;
  for (unsigned i = threadIdx.x; i < count_of_buckets; i += kThreads) {
    loss += parts[i].loss;
    correct += parts[i].correct;
  }
  loss = block_sum(loss);
  correct = block_sum(correct);
  if (threadIdx.x != 0) return;
  result->loss = count == 0 ? 0 : loss / static_cast<double>(count);
  result->correct = correct;
}

/// Launches kernel(parts, arguments...) on enough blocks for `count` items, `per_block` items per
/// block, then the kernel that adds up the parts.
template <class... Parameters, class... Arguments>
void reduce_losses(On on, ClassLoss* result, std::int64_t count, std::int64_t per_block,
                   void (*kernel)(ClassLoss*, Parameters...), const Arguments&... arguments) {
  auto* const parts = reinterpret_cast<ClassLoss*>(on.scratch);
  const unsigned blocks = count == 0 ? 0 : std::min(blocks_for(count, per_block), kMostParts);
  if (blocks > 0) launch(on, blocks, kThreads, kernel, parts, arguments...);
  launch(on, 1, kThreads, finish_kernel, result, parts, blocks, count);
}

struct Largest {
  float value;
  std::int64_t place;
};

/// The largest logit of a row and its first index, ignoring NaN; in every lane.
__device__ Largest largest_of(const float* row, std::int64_t classes) {
  Largest best{-INFINITY, std::numeric_limits<std::int64_t>::max()};
  const auto take = [&](float value, std::int64_t place) {
    if (value > best.value || (value == best.value && place < best.place)) best = {value, place};
  };
  for (std::int64_t c = threadIdx.x % kWarp; c < classes; c += kWarp) take(row[c], c);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float value = __shfl_xor_sync(0xffffffffu, best.value, offset);
    const std::int64_t place = __shfl_xor_sync(0xffffffffu, best.place, offset);
    take(value, place);
  }
  return best;
}

/// One warp per sample.
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(ClassLoss* parts, float* dlogits, const float* logits,
                   const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                   float scale) {
  const int lane = threadIdx.x % kWarp;
  const float share = scale / static_cast<float>(batch);
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t b = first_index() / kWarp; b < batch; b += index_step() / kWarp) {
    const float* const row = logits + b * classes;
    const std::int64_t label = labels[b];
    const bool is_class = label >= 0 && label < classes;
    const Largest largest = largest_of(row, classes);
    float sum = 0;
    for (std::int64_t c = lane; c < classes; c += kWarp)
      sum += exp_non_positive(row[c] - largest.value);
    sum = warp_sum(sum);
    if (dlogits)
      for (std::int64_t c = lane; c < classes; c += kWarp) {
        const float softmax = exp_non_positive(row[c] - largest.value) * (share / sum);
        dlogits[b * classes + c] = softmax - (c == label ? share : 0.0f);
      }
    if (lane != 0) continue;
    loss += is_class ? log(static_cast<double>(sum)) +
                           (static_cast<double>(largest.value) - static_cast<double>(row[label]))
                     : static_cast<double>(NAN);
    correct += largest.place == label;
  }
  store_part(parts, loss, correct);
}

__global__ void __launch_bounds__(kThreads)
    sigmoid_kernel(ClassLoss* parts, float* dy, const float* y, const float* t, std::int64_t count,
                   float scale) {
  const float share = scale / static_cast<float>(count);
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t i = first_index(); i < count; i += index_step()) {
    const SigmoidLoss at = sigmoid_loss(y[i], t[i]);
    loss += static_cast<double>(at.loss);
    correct += at.correct;
    if (dy) dy[i] = share * at.gradient;
  }
  store_part(parts, loss, correct);
}

__global__ void __launch_bounds__(kThreads)
    squares_kernel(ClassLoss* parts, float* dy, const float* y, const float* t, std::int64_t count,
                   float scale) {
  const float factor =
      static_cast<float>(2 * static_cast<double>(scale) / static_cast<double>(count));
  double loss = 0;
  for (std::int64_t i = first_index(); i < count; i += index_step()) {
    const float difference = y[i] - t[i];
    loss += static_cast<double>(difference) * static_cast<double>(difference);
    if (dy) dy[i] = factor * difference;
  }
  store_part(parts, loss, 0);
}

}  // namespace

void softmax_cross_entropy(On on, ClassLoss* result, float* dlogits, const float* logits,
                           const std::int32_t* labels, std::int64_t batch, std::int64_t classes,
                           float scale) {
  reduce_losses(on, result, batch, kThreads / kWarp, softmax_kernel, dlogits, logits, labels, batch,
                classes, scale);
}

void sigmoid_cross_entropy(On on, ClassLoss* result, float* dy, const float* y, const float* t,
                           std::int64_t count, float scale) {
  reduce_losses(on, result, count, kThreads, sigmoid_kernel, dy, y, t, count, scale);
}

void mean_squared_error(On on, ClassLoss* result, float* dy, const float* y, const float* t,
                        std::int64_t count, float scale) {
  reduce_losses(on, result, count, kThreads, squares_kernel, dy, y, t, count, scale);
}

}  // namespace leeway::kernels::cuda
