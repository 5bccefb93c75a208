#pragma once
// sigmoid_cross_entropy: the loss for yes-or-no questions, one a number of output.
#include <cstdint>

#include "kernels/softmax_cross_entropy.hpp"

namespace leeway::kernels {

/// Mean over all B * O numbers of -t log s(y) - (1 - t) log(1 - s(y)), s the sigmoid, as PyTorch's
/// BCEWithLogitsLoss; computed as max(y, 0) - y t + log(1 + exp(-|y|)), which does not overflow.
/// dy = (s(y) - t) / (B O), unless null. dy, y, t: (count) with count = B * O; t in [0, 1]; dy may
/// be y. `correct` counts the numbers for which y > 0 says what t > 0.5 says. NaN in y makes the
/// loss NaN.
ClassLoss sigmoid_cross_entropy(float* dy, const float* y, const float* t, std::int64_t count);

}  // namespace leeway::kernels
