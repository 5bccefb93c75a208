#pragma once
// Shapes for tests of convolution: edge cases and random ones.
#include <algorithm>
#include <string>
#include <vector>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "kernels/conv2d.hpp"

namespace leeway::test {

inline std::string describe(const kernels::Conv2dShape& s) {
  return concat("B ", s.batch, ", C ", s.channels, ", H ", s.height, ", W ", s.width, ", O ",
                s.outputs, ", K ", s.kernel, ", stride ", s.stride, ", padding ", s.padding, ", G ",
                s.groups);
}

inline kernels::Conv2dShape random_conv2d(Rng& rng) {
  const auto pick = [&](std::initializer_list<std::int64_t> of) {
    return of.begin()[rng.below(of.size())];
  };
  kernels::Conv2dShape s;
  s.batch = pick({1, 2, 3});
  s.channels = pick({1, 3, 6, 16, 17, 64});
  s.kernel = pick({1, 2, 3, 5});
  s.stride = pick({1, 2, 3});
  s.padding = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(s.kernel / 2 + 1)));
  const std::int64_t most = s.channels > 16 ? 9 : 14;
  s.height = s.kernel + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most)));
  s.width = s.kernel + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most)));
  s.groups = pick({1, 1, 2, s.channels});
  if (s.channels % s.groups != 0) s.groups = 1;
  const std::int64_t per_group = std::max<std::int64_t>(1, pick({1, 3, 16, 20}) / s.groups);
  s.outputs = s.groups * per_group;
  return s;
}

inline std::vector<kernels::Conv2dShape> conv2d_cases() {
  std::vector<kernels::Conv2dShape> cases = {
      {1, 1, 1, 1, 1, 1, 1, 0, 1},     // one element
      {0, 3, 8, 8, 4, 3, 1, 1, 1},     // no image
      {2, 3, 5, 5, 4, 5, 1, 0, 1},     // one window
      {2, 3, 2, 2, 4, 3, 1, 1, 1},     // an image smaller than the kernel
      {3, 3, 32, 32, 16, 3, 1, 1, 1},  // CIFAR-10
      {2, 1, 28, 28, 6, 5, 1, 2, 1},   // LeNet
      {2, 6, 14, 14, 16, 5, 1, 0, 1},
      {2, 16, 12, 7, 33, 3, 2, 1, 1},
      {1, 64, 8, 8, 64, 1, 1, 0, 1},
      {1, 64, 8, 8, 96, 1, 2, 0, 1},
      {4, 4, 8, 8, 8, 1, 2, 0, 1},  // fewer channels than a block of oneDNN's
      {2, 12, 9, 9, 8, 1, 2, 0, 1},
      {2, 64, 9, 9, 64, 3, 1, 1, 64},  // depthwise
      {2, 17, 9, 8, 17, 3, 2, 1, 17},
      {2, 6, 9, 8, 12, 3, 1, 1, 6},  // depthwise, two outputs per channel
      {2, 34, 7, 7, 34, 3, 1, 1, 2},
      {2, 8, 7, 7, 4, 3, 3, 1, 4},
      {0, 16, 7, 7, 16, 3, 1, 1, 16},
  };
  Rng rng(11);
  for (int i = 0; i < 40; ++i) cases.push_back(random_conv2d(rng));
  return cases;
}

}  // namespace leeway::test
