#pragma once
// attention: what each token takes from those before it and from itself (Vaswani et al. 2017,
// section 3.2, causal).
//
// B batch, T tokens, H heads, D features of all heads together; F = D / H of one. x (B, T, 3, H, F)
// holds queries, keys and values side by side, as one linear layer of 3 D outputs writes them; y
// (B, T, H, F). Of a head, y = softmax(q k^T / sqrt(F)) v, where a query sees no later key.
//
// The T x T weights are never there as a whole. Blocks of them are made, used and forgotten, with
// the softmax's maximum and sum corrected as larger numbers come (Milakov and Gimelshein 2018;
// Dao et al. 2022); backward makes them again from the logarithm of that sum.
#include <cstddef>
#include <cstdint>

namespace leeway::kernels {

struct AttentionShape {
  /// Features of one head that every device takes.
  static constexpr std::int64_t kMaxHeadFeatures = 256;

  std::int64_t batch = 0, tokens = 0, heads = 1, features = 0;  // B, T, H, D

  constexpr std::int64_t head_features() const { return features / heads; }  // F
  /// Multiplications and additions of forward, of the pairs that see each other alone; backward
  /// makes two and a half times as many.
  std::int64_t flops() const { return 2 * batch * tokens * (tokens + 1) * features; }
};

/// Bytes of scratch that forward and backward want, the larger of the two.
std::size_t attention_scratch_bytes(const AttentionShape& shape);

/// y (B, T, D) as above. log_sum (B, H, T) = the logarithm of each softmax's sum, for backward.
/// Requires that H divides D, and at most kMaxHeadFeatures in a head. y may not be x.
void attention_forward(float* y, float* log_sum, const float* x, std::byte* scratch,
                       const AttentionShape& shape);

/// dx (B, T, 3 D) = gradient of x, of the same y and log_sum. dx may be neither dy nor x.
void attention_backward(float* dx, const float* dy, const float* x, const float* y,
                        const float* log_sum, std::byte* scratch, const AttentionShape& shape);

}  // namespace leeway::kernels
