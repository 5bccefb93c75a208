#pragma once
// Shapes for tests of pooling: edge cases and random ones.
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "kernels/pool2d.hpp"

namespace leeway::test {

inline std::string describe(const kernels::Pool2dShape& s) {
  return concat("B ", s.batch, ", C ", s.channels, ", H ", s.height, ", W ", s.width, ", K ",
                s.kernel, ", stride ", s.stride, ", padding ", s.padding);
}

inline std::vector<kernels::Pool2dShape> pool2d_cases() {
  std::vector<kernels::Pool2dShape> cases = {
      {2, 64, 8, 8, 2, 2, 0}, {2, 17, 7, 9, 2, 2, 0},  // tiles, with and without leftover pixels
      {2, 1, 9, 5, 2, 2, 0},  {2, 6, 9, 10, 3, 3, 0},
      {0, 3, 4, 4, 2, 2, 0},  {2, 5, 8, 8, 8, 8, 0},   // one window per image
      {1, 3, 7, 7, 7, 1, 0},  {2, 16, 9, 9, 3, 2, 1},  // overlapping windows
      {2, 3, 6, 6, 3, 1, 1},  {1, 20, 16, 15, 15, 3, 7},
      {2, 4, 9, 9, 2, 3, 0},  // windows with gaps
      {2, 4, 9, 9, 2, 2, 1},  {1, 1, 1, 1, 1, 1, 0},
  };
  Rng rng(12);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(n)));
  };
  for (int i = 0; i < 40; ++i) {
    kernels::Pool2dShape s;
    s.kernel = 1 + below(5);
    s.stride = 1 + below(4);
    s.padding = below(s.kernel / 2 + 1);
    s.batch = 1 + below(3);
    s.channels = 1 + below(40);
    s.height = s.kernel + below(9);
    s.width = s.kernel + below(9);
    cases.push_back(s);
  }
  return cases;
}

}  // namespace leeway::test
