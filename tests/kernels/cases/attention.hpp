#pragma once
// Shapes for tests of attention and positions.
#include <string>
#include <vector>

#include "core/text.hpp"
#include "kernels/attention.hpp"

namespace leeway::test {

inline std::string describe(const kernels::AttentionShape& s) {
  return concat("B ", s.batch, ", T ", s.tokens, ", H ", s.heads, ", D ", s.features);
}

/// B, T, H, D: one token; 32 and 64 tokens, and one more or less; heads with one feature, an odd
/// number of features, and the maximum; empty batches.
inline std::vector<kernels::AttentionShape> attention_cases() {
  return {{0, 5, 2, 8},    {2, 0, 2, 8},    {1, 1, 1, 1},    {2, 1, 3, 12},  {1, 2, 1, 16},
          {2, 7, 2, 6},    {1, 31, 1, 16},  {2, 32, 2, 32},  {1, 33, 4, 20}, {1, 63, 1, 17},
          {2, 64, 4, 128}, {1, 65, 2, 130}, {1, 97, 1, 64},  {1, 128, 1, 5}, {1, 130, 2, 66},
          {1, 3, 1, 256},  {1, 40, 2, 400}, {1, 200, 3, 24}, {3, 16, 8, 8}};
}

}  // namespace leeway::test
