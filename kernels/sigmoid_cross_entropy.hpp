#pragma once
// sigmoid_cross_entropy: the loss for independent binary outputs.
#include <cstdint>

#include "kernels/softmax_cross_entropy.hpp"

namespace leeway::kernels {

/// Mean over all elements of -t log s(y) - (1 - t) log(1 - s(y)) with the sigmoid s, like PyTorch's
/// BCEWithLogitsLoss; computed as max(y, 0) - y t + log(1 + exp(-|y|)), which does not overflow.
/// dy = scale * (s(y) - t) / count, unless null; the loss itself is not scaled. dy, y, t: (count)
/// with count = B * O; t in [0, 1]; dy may be y. `correct` counts the elements where y > 0 equals t
/// > 0.5. NaN in y makes the loss NaN.
ClassLoss sigmoid_cross_entropy(float* dy, const float* y, const float* t, std::int64_t count,
                                float scale = 1);

}  // namespace leeway::kernels
