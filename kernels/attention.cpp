#include "kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/math.hpp"
#include "kernels/register_tile.hpp"
#include "kernels/shape_checks.hpp"
#include "kernels/simd.hpp"

namespace leeway::kernels {

namespace {

// A block of queries of a head visits its blocks of keys in order. Each query has a lane of a
// vector, so that its maximum and its sum need no operation across lanes.
constexpr std::int64_t kQueries = 2 * kLanes;
constexpr std::int64_t kKeys = 64;

constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

/// Scratch memory of one head. Rows (tokens) and columns (features) are padded with zeros to whole
/// blocks.
struct Workspace {
  Workspace(std::byte* bytes, const AttentionShape& s)
      : rows(rounded_up(s.tokens, kQueries)), columns(rounded_up(s.head_features(), kLanes)) {
    auto* next = reinterpret_cast<float*>(bytes);
    const auto take = [&](std::int64_t floats) {
      float* const taken = next;
      next += floats;
      return taken;
    };
    for (float** of_tokens : {&q, &k, &v, &dy, &dk, &dv}) *of_tokens = take(rows * columns);
    for (float** of_block : {&q_transposed, &dy_transposed, &sums})
      *of_block = take(kQueries * columns);
    for (float** of_pair : {&weights, &slopes}) *of_pair = take(kQueries * kKeys);
    bytes_used = static_cast<std::size_t>(reinterpret_cast<std::byte*>(next) - bytes);
  }

  std::int64_t rows, columns;
  float *q, *k, *v, *dy, *dk, *dv;      // (rows, columns)
  float *q_transposed, *dy_transposed;  // (columns, kQueries): a block of q or dy, transposed
  float* sums;                          // (kQueries, columns): a block of y or of dq
  float *weights, *slopes;              // (kKeys, kQueries): of the pairs of two blocks
  std::size_t bytes_used;
};

/// to (count) = scale * from, in whole vectors and a remainder.
LW_INLINE void scale_row(float* to, const float* from, float scale, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_lanes(to + i, scale * load_lanes(from + i));
  for (; i < count; ++i) to[i] = scale * from[i];
}

/// to (w.rows, w.columns) = scale * from (T, F), whose rows are `stride` floats apart.
LW_INLINE void pack(float* to, const float* from, std::int64_t stride, float scale,
                    const Workspace& w, const AttentionShape& s) {
  const std::int64_t features = s.head_features();
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    float* const out = to + t * w.columns;
    std::fill_n(out + w.columns - kLanes, kLanes, 0.0f);
    scale_row(out, from + t * stride, scale, features);
  }
  std::fill_n(to + s.tokens * w.columns, (w.rows - s.tokens) * w.columns, 0.0f);
}

/// to (columns, kQueries) = the transpose of kQueries rows.
LW_INLINE void transpose_rows(float* to, const float* rows, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; c += kLanes)
    for (std::int64_t r = 0; r < kQueries; r += kLanes)
      transpose(to + c * kQueries + r, kQueries, rows + r * columns + c, columns);
}

/// Masks the keys, from `first_key` on, that come after a query, from `first_query` on.
LW_INLINE void mask_later_keys(float* logits, std::int64_t first_key, std::int64_t keys,
                               std::int64_t first_query) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (std::int64_t k = std::max<std::int64_t>(0, first_query + 1 - first_key); k < keys; ++k) {
    const std::int64_t hidden = first_key + k - first_query;  // number of queries before the key
    std::fill_n(logits + k * kQueries, std::min(hidden, kQueries), kNever);
  }
}

/// Running maximum and sum of each query's softmax.
struct Softmax {
  float largest[kQueries], sum[kQueries];

  LW_INLINE void begin() {
    std::fill_n(largest, kQueries, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, kQueries, 0.0f);
  }
  /// logits (keys, kQueries) become weights relative to the new maximum; factor (kQueries) =
  /// rescales earlier results to it.
  LW_INLINE void update(float* logits, std::int64_t keys, float* factor) {
    float top[kQueries];
    for (std::int64_t half = 0; half < kQueries; half += kLanes) {
      Lanes most = load_lanes(largest + half);
      for (std::int64_t k = 0; k < keys; ++k) {
        const Lanes logit = load_lanes(logits + k * kQueries + half);
        most = most < logit ? logit : most;
      }
      store_lanes(top + half, most);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < kQueries; ++i) {
      factor[i] = exp_non_positive(largest[i] - top[i]);
      sum[i] *= factor[i];
      largest[i] = top[i];
    }
    for (std::int64_t k = 0; k < keys; ++k)
#pragma omp simd
      for (std::int64_t i = 0; i < kQueries; ++i) {
        float& weight = logits[k * kQueries + i];
        weight = exp_non_positive(weight - top[i]);
      }
    for (std::int64_t half = 0; half < kQueries; half += kLanes) {
      Lanes total = load_lanes(sum + half);
      for (std::int64_t k = 0; k < keys; ++k) total += load_lanes(logits + k * kQueries + half);
      store_lanes(sum + half, total);
    }
  }
};

/// Number of rows of a block that are tokens, not padding.
LW_INLINE std::int64_t rows_of(std::int64_t first_query, const AttentionShape& s) {
  return std::min(kQueries, s.tokens - first_query);
}

LW_SIMD void forward_head(float* y, float* log_sum, const float* x, const Workspace& w,
                          const AttentionShape& s) {
  const std::int64_t features = s.head_features(), columns = w.columns;
  pack(w.q, x, 3 * s.features, 1.0f / std::sqrt(static_cast<float>(features)), w, s);
  pack(w.k, x + s.features, 3 * s.features, 1, w, s);
  pack(w.v, x + 2 * s.features, 3 * s.features, 1, w, s);
  for (std::int64_t query = 0; query < w.rows; query += kQueries) {
    transpose_rows(w.q_transposed, w.q + query * columns, columns);
    Softmax softmax;
    softmax.begin();
    const std::int64_t seen = query + kQueries;
    for (std::int64_t key = 0; key < seen; key += kKeys) {
      const std::int64_t keys = std::min(kKeys, seen - key);
      multiply({keys, kQueries, columns, false}, w.weights, kQueries,
               {w.k + key * columns, columns, 1}, w.q_transposed, kQueries);
      mask_later_keys(w.weights, key, keys, query);
      float factor[kQueries];
      softmax.update(w.weights, keys, factor);
      for (std::int64_t i = 0; key > 0 && i < kQueries; ++i)
        scale_row(w.sums + i * columns, w.sums + i * columns, factor[i], columns);
      multiply({kQueries, columns, keys, key > 0}, w.sums, columns, {w.weights, 1, kQueries},
               w.v + key * columns, columns);
    }
    for (std::int64_t i = 0; i < rows_of(query, s); ++i) {
      const float share = 1.0f / softmax.sum[i];
      scale_row(y + (query + i) * s.features, w.sums + i * columns, share, features);
      log_sum[query + i] = softmax.largest[i] + std::log(softmax.sum[i]);
    }
  }
}

/// product (kQueries) = dot products of y and dy, which the softmax's gradient subtracts; logs =
/// log_sum padded with zeros.
LW_INLINE void row_terms(float* product, float* logs, const float* y, const float* log_sum,
                         std::int64_t query, const Workspace& w, const AttentionShape& s) {
  const std::int64_t features = s.head_features(), rows = rows_of(query, s);
  std::fill_n(product, kQueries, 0.0f);
  std::fill_n(logs, kQueries, 0.0f);
  std::copy_n(log_sum + query, rows, logs);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* out = y + (query + i) * s.features;
    const float* gradient = w.dy + (query + i) * w.columns;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t f = 0; f < features; ++f) sum += out[f] * gradient[f];
    product[i] = sum;
  }
}

/// sums (keys, columns) += of_pairs (keys, kQueries) rows (kQueries, columns); = for keys that no
/// earlier query has seen.
LW_INLINE void add_by_key(float* sums, const float* of_pairs, const float* rows, std::int64_t key,
                          std::int64_t keys, std::int64_t query, std::int64_t columns) {
  const std::int64_t seen = std::min(keys, query - key);
  multiply({seen, columns, kQueries, true}, sums, columns, {of_pairs, kQueries, 1}, rows, columns);
  multiply({keys - seen, columns, kQueries, false}, sums + seen * columns, columns,
           {of_pairs + seen * kQueries, kQueries, 1}, rows, columns);
}

/// Gradients of a block of queries of one head: w.sums = dq; adds to w.dk and w.dv.
LW_INLINE void backward_block(const float* y, const float* log_sum, std::int64_t query,
                              const Workspace& w, const AttentionShape& s) {
  const std::int64_t columns = w.columns;
  const float* const q = w.q + query * columns;
  const float* const dy = w.dy + query * columns;
  transpose_rows(w.q_transposed, q, columns);
  transpose_rows(w.dy_transposed, dy, columns);
  float product[kQueries], logs[kQueries];
  row_terms(product, logs, y, log_sum, query, w, s);
  const std::int64_t seen = query + kQueries;
  for (std::int64_t key = 0; key < seen; key += kKeys) {
    const std::int64_t keys = std::min(kKeys, seen - key), at = key * columns;
    multiply({keys, kQueries, columns, false}, w.weights, kQueries, {w.k + at, columns, 1},
             w.q_transposed, kQueries);
    multiply({keys, kQueries, columns, false}, w.slopes, kQueries, {w.v + at, columns, 1},
             w.dy_transposed, kQueries);
    mask_later_keys(w.weights, key, keys, query);
    for (std::int64_t k = 0; k < keys; ++k)
#pragma omp simd
      for (std::int64_t i = 0; i < kQueries; ++i) {
        float& weight = w.weights[k * kQueries + i];
        float& slope = w.slopes[k * kQueries + i];
        weight = exp_non_positive(weight - logs[i]);
        slope = weight * (slope - product[i]);
      }
    add_by_key(w.dv + at, w.weights, dy, key, keys, query, columns);
    add_by_key(w.dk + at, w.slopes, q, key, keys, query, columns);
    multiply({kQueries, columns, keys, key > 0}, w.sums, columns, {w.slopes, 1, kQueries}, w.k + at,
             columns);
  }
}

/// to (T, F), rows `stride` apart, = scale * from (rows, w.columns).
LW_INLINE void unpack(float* to, const float* from, std::int64_t rows, std::int64_t stride,
                      float scale, std::int64_t features, std::int64_t columns) {
  for (std::int64_t t = 0; t < rows; ++t)
    scale_row(to + t * stride, from + t * columns, scale, features);
}

LW_SIMD void backward_head(float* dx, const float* dy, const float* x, const float* y,
                           const float* log_sum, const Workspace& w, const AttentionShape& s) {
  const std::int64_t features = s.head_features(), columns = w.columns, stride = 3 * s.features;
  const float scale = 1.0f / std::sqrt(static_cast<float>(features));
  pack(w.q, x, stride, scale, w, s);
  pack(w.k, x + s.features, stride, 1, w, s);
  pack(w.v, x + 2 * s.features, stride, 1, w, s);
  pack(w.dy, dy, s.features, 1, w, s);
  for (std::int64_t query = 0; query < w.rows; query += kQueries) {
    backward_block(y, log_sum, query, w, s);
    unpack(dx + query * stride, w.sums, rows_of(query, s), stride, scale, features, columns);
  }
  unpack(dx + s.features, w.dk, s.tokens, stride, 1, features, columns);
  unpack(dx + 2 * s.features, w.dv, s.tokens, stride, 1, features, columns);
}

/// Calls f(sample, head) for each head of each sample.
template <class F>
void for_each_head(const AttentionShape& s, F f) {
  check(s);
  if (s.tokens == 0) return;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) f(b * s.tokens, h);
}

}  // namespace

std::size_t attention_scratch_bytes(const AttentionShape& shape) {
  return Workspace(nullptr, shape).bytes_used;
}

void attention_forward(float* y, float* log_sum, const float* x, std::byte* scratch,
                       const AttentionShape& s) {
  const Workspace workspace(scratch, s);
  for_each_head(s, [&](std::int64_t row, std::int64_t head) {
    const std::int64_t column = head * s.head_features();
    forward_head(y + row * s.features + column, log_sum + row * s.heads + head * s.tokens,
                 x + row * 3 * s.features + column, workspace, s);
  });
}

void attention_backward(float* dx, const float* dy, const float* x, const float* y,
                        const float* log_sum, std::byte* scratch, const AttentionShape& s) {
  const Workspace workspace(scratch, s);
  for_each_head(s, [&](std::int64_t row, std::int64_t head) {
    const std::int64_t column = head * s.head_features();
    const std::int64_t at = row * s.features + column, wide = row * 3 * s.features + column;
    backward_head(dx + wide, dy + at, x + wide, y + at, log_sum + row * s.heads + head * s.tokens,
                  workspace, s);
  });
}

}  // namespace leeway::kernels
