#pragma once
// Shapes for tests of dropout.
#include <vector>

#include "kernels/dropout.hpp"

namespace leeway::test {

inline std::vector<kernels::DropoutShape> dropout_cases() {
  return {{0, 10, 0.5f, 1},   {1, 1, 0.5f, 2},    {3, 5, 0.25f, 3}, {2, 255, 0.9f, 4},
          {2, 256, 0.1f, 5},  {3, 257, 0.5f, 6},  {2, 0, 0.5f, 7},  {2, 1000, 0, 8},
          {4, 1031, 0.5f, 9}, {1, 40000, 0.3f, 0}};
}

}  // namespace leeway::test
