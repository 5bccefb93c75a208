#pragma once
// embedding: rows of a table, chosen by token numbers.
//
// Tokens arrive as floats like all features of a sample, whole numbers in [0, V); N of them in all.
// V vocabulary, D features of one row.
#include <cstdint>

#include "kernels/linear.hpp"

namespace leeway::kernels {

struct EmbeddingShape {
  std::int64_t tokens = 0, vocabulary = 0, features = 0;  // N, V, D
};

/// y (N, D) = the rows of weight (V, D) that tokens (N) name. A token that names none gives a row
/// of NaN, so that the loss shows it.
void embedding_forward(float* y, const float* tokens, ConstSlices weight,
                       const EmbeddingShape& shape);

/// dweight (V, D) = sum of the rows of dy (N, D) by token, in the order of tokens; zero where none
/// came. Tokens that name no row are left out.
void embedding_backward(Slices dweight, const float* dy, const float* tokens,
                        const EmbeddingShape& shape);

}  // namespace leeway::kernels
