#pragma once
// softmax_cross_entropy: the loss for classes.
#include <cstdint>

namespace leeway::kernels {

struct ClassLoss {
  double loss = 0;           // mean over the batch; 0 for an empty one
  std::int64_t correct = 0;  // samples whose largest logit (the first, among equals) is their label
};

/// Mean over B of -log softmax(logits)[label].
/// dlogits = (softmax(logits) - one_hot(label)) / B, unless null. dlogits, logits: (B, C),
/// distinct; labels: (B). Requires 0 <= label < C, checked. A logit that is NaN or +infinity makes
/// the loss NaN.
ClassLoss softmax_cross_entropy(float* dlogits, const float* logits, const std::int32_t* labels,
                                std::int64_t batch, std::int64_t classes);

}  // namespace leeway::kernels
