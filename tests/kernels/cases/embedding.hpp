#pragma once
// Shapes for tests of embedding.
#include <vector>

#include "kernels/embedding.hpp"

namespace leeway::test {

inline std::vector<kernels::EmbeddingShape> embedding_cases() {
  return {{0, 5, 4}, {1, 1, 1}, {7, 5, 3}, {100, 10, 16}, {33, 1000, 64}, {500, 3, 17}};
}

}  // namespace leeway::test
