#include <limits>

#include "kernels/cuda/families.hpp"
#include "kernels/cuda/reduce.hpp"
#include "kernels/math.hpp"
#include "kernels/shape_checks.hpp"

namespace leeway::kernels::cuda {

namespace {

// A block owns a tile of kTile rows (queries or keys) of one head and visits the other side tile by
// tile. Each warp handles kRows of its rows, each lane one row of the other side. Features are
// loaded into shared memory kSection at a time.
constexpr int kTile = kWarp;
constexpr int kRows = kTile / (kThreads / kWarp);
constexpr int kSection = 2 * kWarp;
constexpr int kSections = static_cast<int>(AttentionShape::kMaxHeadFeatures) / kSection;

using Tile = float[kTile][kSection + 1];
using Pairs = float[kTile][kTile];
using Sum = float[kRows][2 * kSections];  // of features lane and lane + kWarp of each section

/// The rows (T, F) of one head, `stride` floats apart.
struct Rows {
  const float* data;
  std::int64_t stride, tokens, features;
};

/// The sample, head and tile of a block.
struct Place {
  std::int64_t sample, head, first;

  /// Starts with the last tile, because later queries see more keys.
  __device__ static Place of(std::int64_t item, const AttentionShape& s) {
    const std::int64_t tiles = (s.tokens + kTile - 1) / kTile;
    const auto [of_head, back] = divide(item, tiles);
    const auto [sample, head] = divide(of_head, s.heads);
    return {sample, head, (tiles - 1 - back) * kTile};
  }
  /// Queries, keys or values (0, 1, 2) of x, or of dx.
  template <class T>
  __device__ T* in_x(T* x, int which, const AttentionShape& s) const {
    return x + (sample * s.tokens * 3 + which) * s.features + head * s.head_features();
  }
  template <class T>
  __device__ T* in_y(T* y, const AttentionShape& s) const {
    return y + sample * s.tokens * s.features + head * s.head_features();
  }
  /// The head's row of an array (B, H, T).
  template <class T>
  __device__ T* in_sums(T* sums, const AttentionShape& s) const {
    return sums + (sample * s.heads + head) * s.tokens;
  }
  __device__ Rows rows_of_x(const float* x, int which, const AttentionShape& s) const {
    return {in_x(x, which, s), 3 * s.features, s.tokens, s.head_features()};
  }
  __device__ Rows rows_of_y(const float* y, const AttentionShape& s) const {
    return {in_y(y, s), s.features, s.tokens, s.head_features()};
  }
};

/// tile = one section of the features of rows `first` onwards, padded with 0.
__device__ void load(Tile& tile, const Rows& rows, std::int64_t first, std::int64_t section) {
  for (int i = threadIdx.x; i < kTile * kSection; i += kThreads) {
    const int row = i / kSection, column = i % kSection;
    const bool there = first + row < rows.tokens && section + column < rows.features;
    tile[row][column] = there ? rows.data[(first + row) * rows.stride + section + column] : 0.0f;
  }
}

/// sums[r] = dot product of the warp's row r of `own` and the lane's row of `other`.
__device__ void multiply(float (&sums)[kRows], Tile& a, Tile& b, const Rows& own,
                         std::int64_t first_own, const Rows& other, std::int64_t first_other) {
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * kRows;
  for (float& sum : sums) sum = 0;
  for (std::int64_t section = 0; section < own.features; section += kSection) {
    __syncthreads();  // the previous contents have been read
    load(a, own, first_own, section);
    load(b, other, first_other, section);
    __syncthreads();
    for (int f = 0; f < kSection; ++f)
      for (int r = 0; r < kRows; ++r) sums[r] += a[row + r][f] * b[lane][f];
  }
}

/// sum[r] += the rows of `other`, weighted by the warp's row r of `weights`.
__device__ void gather(Sum& sum, const Pairs& weights, Tile& b, const Rows& other,
                       std::int64_t first) {
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * kRows;
#pragma unroll
  for (int section = 0; section < kSections; ++section) {
    if (section * kSection >= other.features) break;
    __syncthreads();  // the weights are written and the previous contents read
    load(b, other, first, section * kSection);
    __syncthreads();
    for (int k = 0; k < kTile; ++k)
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        sum[r][2 * section] += weights[row + r][k] * b[k][lane];
        sum[r][2 * section + 1] += weights[row + r][k] * b[k][lane + kWarp];
      }
  }
}

/// out (T, F), rows `stride` floats apart: the block's tile = factor[r] * sum[r].
__device__ void write(float* out, std::int64_t stride, const Sum& sum, const float (&factor)[kRows],
                      std::int64_t first, const AttentionShape& s) {
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * kRows;
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int part = 0; part < 2 * kSections; ++part) {
      const std::int64_t feature = part * kWarp + lane;
      if (first + row + r < s.tokens && feature < s.head_features())
        out[(first + row + r) * stride + feature] = factor[r] * sum[r][part];
    }
}

__device__ float warp_max(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = value < other ? other : value;
  }
  return value;
}

__global__ void __launch_bounds__(kThreads)
    forward_kernel(float* y, float* log_sum, const float* x, std::int64_t items, float scale,
                   AttentionShape s) {
  __shared__ Tile a, b;
  __shared__ Pairs weights;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * kRows;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const Place at = Place::of(item, s);
    const Rows q = at.rows_of_x(x, 0, s), k = at.rows_of_x(x, 1, s), v = at.rows_of_x(x, 2, s);
    Sum sum = {};
    float largest[kRows], total[kRows], logits[kRows];
    for (int r = 0; r < kRows; ++r) {
      largest[r] = kNever;
      total[r] = 0;
    }
    for (std::int64_t key = 0; key <= at.first; key += kTile) {
      multiply(logits, a, b, q, at.first, k, key);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const bool seen = key + lane <= at.first + row + r && key + lane < s.tokens;
        const float logit = seen ? scale * logits[r] : kNever;
        const float of_tile = warp_max(logit);
        const float top = largest[r] < of_tile ? of_tile : largest[r];
        const float factor = exp_non_positive(largest[r] - top);
        const float weight = exp_non_positive(logit - top);
        largest[r] = top;
        total[r] = total[r] * factor + warp_sum(weight);
        weights[row + r][lane] = weight;
        for (float& part : sum[r]) part *= factor;
      }
      gather(sum, weights, b, v, key);
    }
    for (int r = 0; r < kRows; ++r) {
      if (lane == 0 && at.first + row + r < s.tokens)
        at.in_sums(log_sum, s)[at.first + row + r] = largest[r] + logf(total[r]);
      total[r] = 1.0f / total[r];
    }
    write(at.in_y(y, s), s.features, sum, total, at.first, s);
  }
}

/// One warp per token and head: terms (B, H, T) = dot product of y and dy.
__global__ void __launch_bounds__(kThreads)
    terms_kernel(float* terms, const float* y, const float* dy, AttentionShape s) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t features = s.head_features();
  for (std::int64_t i = first_index() / kWarp; i < s.batch * s.heads * s.tokens;
       i += index_step() / kWarp) {
    const auto [of_head, token] = divide(i, s.tokens);
    const auto [sample, head] = divide(of_head, s.heads);
    const std::int64_t begin = (sample * s.tokens + token) * s.features + head * features;
    float sum = 0;
    for (std::int64_t f = lane; f < features; f += kWarp) sum += y[begin + f] * dy[begin + f];
    sum = warp_sum(sum);
    if (lane == 0) terms[i] = sum;
  }
}

/// One block per tile of queries: their gradients.
__global__ void __launch_bounds__(kThreads)
    backward_queries_kernel(float* dx, const float* dy, const float* x, const float* log_sum,
                            const float* terms, std::int64_t items, float scale, AttentionShape s) {
  __shared__ Tile a, b;
  __shared__ Pairs slopes;
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * kRows;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const Place at = Place::of(item, s);
    const Rows q = at.rows_of_x(x, 0, s), k = at.rows_of_x(x, 1, s), v = at.rows_of_x(x, 2, s);
    const Rows out = at.rows_of_y(dy, s);
    Sum sum = {};
    float logits[kRows], of_weights[kRows], scales[kRows];
    for (std::int64_t key = 0; key <= at.first; key += kTile) {
      multiply(logits, a, b, q, at.first, k, key);
      multiply(of_weights, a, b, out, at.first, v, key);
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t query = at.first + row + r;
        const bool seen = key + lane <= query && query < s.tokens;
        slopes[row + r][lane] =
            seen ? exp_non_positive(scale * logits[r] - at.in_sums(log_sum, s)[query]) *
                       (of_weights[r] - at.in_sums(terms, s)[query])
                 : 0.0f;
      }
      gather(sum, slopes, b, k, key);
    }
    for (float& factor : scales) factor = scale;
    write(at.in_x(dx, 0, s), 3 * s.features, sum, scales, at.first, s);
  }
}

/// One block per tile of keys: their gradients and those of their values.
__global__ void __launch_bounds__(kThreads)
    backward_keys_kernel(float* dx, const float* dy, const float* x, const float* log_sum,
                         const float* terms, std::int64_t items, float scale, AttentionShape s) {
  __shared__ Tile a, b;
  __shared__ Pairs weights, slopes;
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * kRows;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const Place at = Place::of(item, s);
    const Rows q = at.rows_of_x(x, 0, s), k = at.rows_of_x(x, 1, s), v = at.rows_of_x(x, 2, s);
    const Rows out = at.rows_of_y(dy, s);
    Sum of_keys = {}, of_values = {};
    float logits[kRows], of_weights[kRows], scales[kRows];
    for (std::int64_t first = at.first; first < s.tokens; first += kTile) {
      multiply(logits, a, b, k, at.first, q, first);
      multiply(of_weights, a, b, v, at.first, out, first);
      const std::int64_t query = first + lane;
      for (int r = 0; r < kRows; ++r) {
        const bool seen = at.first + row + r <= query && query < s.tokens;
        const float weight =
            seen ? exp_non_positive(scale * logits[r] - at.in_sums(log_sum, s)[query]) : 0.0f;
        weights[row + r][lane] = weight;
        slopes[row + r][lane] =
            seen ? weight * (of_weights[r] - at.in_sums(terms, s)[query]) : 0.0f;
      }
      gather(of_values, weights, b, out, first);
      gather(of_keys, slopes, b, q, first);
    }
    for (float& factor : scales) factor = scale;
    write(at.in_x(dx, 1, s), 3 * s.features, of_keys, scales, at.first, s);
    for (float& factor : scales) factor = 1;
    write(at.in_x(dx, 2, s), 3 * s.features, of_values, scales, at.first, s);
  }
}

std::int64_t tiles_of(const AttentionShape& s) {
  return s.batch * s.heads * ((s.tokens + kTile - 1) / kTile);
}
float scale_of(const AttentionShape& s) {
  return 1.0f / std::sqrt(static_cast<float>(s.head_features()));
}

}  // namespace

std::size_t attention_scratch_bytes(const AttentionShape& s) {
  return static_cast<std::size_t>(s.batch * s.heads * s.tokens) * sizeof(float);
}

void attention_forward(On on, float* y, float* log_sum, const float* x, const AttentionShape& s) {
  check(s);
  const std::int64_t items = tiles_of(s);
  if (items == 0) return;
  launch(on, blocks_for(items, 1), kThreads, forward_kernel, y, log_sum, x, items, scale_of(s), s);
}

void attention_backward(On on, float* dx, const float* dy, const float* x, const float* y,
                        const float* log_sum, std::byte* scratch, const AttentionShape& s) {
  check(s);
  const std::int64_t items = tiles_of(s);
  if (items == 0) return;
  auto* const terms = reinterpret_cast<float*>(scratch);
  launch(on, blocks_for(s.batch * s.heads * s.tokens, kThreads / kWarp), kThreads, terms_kernel,
         terms, y, dy, s);
  launch(on, blocks_for(items, 1), kThreads, backward_queries_kernel, dx, dy, x, log_sum, terms,
         items, scale_of(s), s);
  launch(on, blocks_for(items, 1), kThreads, backward_keys_kernel, dx, dy, x, log_sum, terms, items,
         scale_of(s), s);
}

}  // namespace leeway::kernels::cuda
