#pragma once
// Shapes and data for tests of batch_norm and layer_norm.
#include <string>
#include <vector>

#include "core/text.hpp"
#include "kernels/batch_norm.hpp"

namespace leeway::test {

struct NormCase {
  kernels::NormShape shape;
  double mean, spread;  // of the data; naive sums cancel if the mean is large
};

inline std::string describe(const NormCase& c) {
  return concat("R ", c.shape.rows, ", C ", c.shape.columns, ", mean ", c.mean, ", spread ",
                c.spread);
}

inline std::vector<NormCase> norm_cases() {
  std::vector<NormCase> cases;
  for (const std::int64_t columns : {1, 3, 6, 16, 17, 63, 64, 65, 255, 256, 257, 600})
    for (const std::int64_t rows : {2, 3, 5, 31, 33, 130})
      cases.push_back({{rows, columns, 1e-5f}, 0.3, 1});
  cases.push_back({{4000, 3, 1e-5f}, 1000, 1});
  cases.push_back({{700, 40, 1e-5f}, -300, 2});
  cases.push_back({{50, 1000, 1e-5f}, 100, 0.5});
  cases.push_back({{60, 20, 1e-3f}, 0, 1e-3});
  return cases;
}

}  // namespace leeway::test
