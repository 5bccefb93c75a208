#pragma once
// embedding: looks up the rows of a table by token.
//
// N tokens, V vocabulary, D features of a row. Tokens are integers in [0, V), stored as floats like
// all features of a sample.
#include <cstdint>

#include "kernels/linear.hpp"

namespace leeway::kernels {

struct EmbeddingShape {
  std::int64_t tokens = 0, vocabulary = 0, features = 0;  // N, V, D
};

/// y (N, D) = the rows of weight (V, D) that tokens (N) name. An invalid token gives a row of NaN,
/// so that the loss becomes NaN.
void embedding_forward(float* y, const float* tokens, ConstSlices weight,
                       const EmbeddingShape& shape);

/// dweight (V, D) = sums of the rows of dy (N, D) by token, in the order of tokens; rows without a
/// token are zero. Invalid tokens are ignored.
void embedding_backward(Slices dweight, const float* dy, const float* tokens,
                        const EmbeddingShape& shape);

}  // namespace leeway::kernels
