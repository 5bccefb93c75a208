#pragma once
// softmax_cross_entropy: the loss for classification.
#include <cstdint>

namespace leeway::kernels {

struct ClassLoss {
  double loss = 0;           // mean over the batch; 0 if it is empty
  std::int64_t correct = 0;  // number of correct argmax predictions; the first among equal logits
};

/// Mean over B of -log softmax(logits)[label].
/// dlogits = scale * (softmax(logits) - one_hot(label)) / B, unless null; the loss itself is not
/// scaled. dlogits, logits: (B, C), distinct; labels: (B). Requires 0 <= label < C, checked. NaN or
/// +infinity in the logits makes the loss NaN.
ClassLoss softmax_cross_entropy(float* dlogits, const float* logits, const std::int32_t* labels,
                                std::int64_t batch, std::int64_t classes, float scale = 1);

}  // namespace leeway::kernels
