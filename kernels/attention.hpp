#pragma once
// attention: causal multi-head self-attention (Vaswani et al. 2017, section 3.2).
//
// B batch, T tokens, H heads, D features of all heads, F = D / H features of a head. x
// (B, T, 3, H, F) holds queries, keys and values side by side, as a linear layer with 3 D outputs
// writes them; y is (B, T, H, F). For each head, y = softmax(q k^T / sqrt(F)) v, where a query sees
// no later key.
//
// The T x T weights are computed in blocks and never stored as a whole. The softmax is computed
// online (Milakov and Gimelshein 2018; Dao et al. 2022); backward recomputes the weights from the
// logarithm of its sum.
#include <cstddef>
#include <cstdint>

namespace leeway::kernels {

struct AttentionShape {
  /// The largest F that every device supports.
  static constexpr std::int64_t kMaxHeadFeatures = 256;

  std::int64_t batch = 0, tokens = 0, heads = 1, features = 0;  // B, T, H, D

  constexpr std::int64_t head_features() const { return features / heads; }  // F
  /// Multiplications and additions of forward, without masked pairs; backward needs 2.5 times as
  /// many.
  std::int64_t flops() const { return 2 * batch * tokens * (tokens + 1) * features; }
};

/// Bytes of scratch for forward or backward, whichever needs more.
std::size_t attention_scratch_bytes(const AttentionShape& shape);

/// y (B, T, D) as above. log_sum (B, H, T) = logarithm of each softmax's sum, for backward.
/// Requires that H divides D and F <= kMaxHeadFeatures. y may not be x.
void attention_forward(float* y, float* log_sum, const float* x, std::byte* scratch,
                       const AttentionShape& shape);

/// dx (B, T, 3 D) = gradient of x, given y and log_sum of forward. dx may be neither dy nor x.
void attention_backward(float* dx, const float* dy, const float* x, const float* y,
                        const float* log_sum, std::byte* scratch, const AttentionShape& shape);

}  // namespace leeway::kernels
