#pragma once
// Reference: pooling by its definition, in double precision.
#include <cmath>

#include "kernels/pool2d.hpp"
#include "tests/kernels/finite_difference.hpp"

namespace leeway::test::reference {

/// Calls f(element of x, place in the window, element of y) for each element of each window inside
/// the image, in the order of places.
template <class F>
void for_each_in_window(const kernels::Pool2dShape& s, F f) {
  const std::int64_t oh = s.out_height(), ow = s.out_width();
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t i = 0; i < oh; ++i)
      for (std::int64_t j = 0; j < ow; ++j)
        for (std::int64_t place = 0; place < s.kernel * s.kernel; ++place) {
          const std::int64_t h = i * s.stride - s.padding + place / s.kernel;
          const std::int64_t w = j * s.stride - s.padding + place % s.kernel;
          if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
          for (std::int64_t c = 0; c < s.channels; ++c)
            f(static_cast<std::size_t>(((b * s.height + h) * s.width + w) * s.channels + c), place,
              static_cast<std::size_t>(((b * oh + i) * ow + j) * s.channels + c));
        }
}

inline std::size_t pool2d_outputs(const kernels::Pool2dShape& s) {
  return static_cast<std::size_t>(s.batch * s.out_height() * s.out_width() * s.channels);
}

struct MaxPool {
  Doubles y;
  std::vector<std::uint8_t> from;
};

inline MaxPool max_pool2d_forward(const Doubles& x, const kernels::Pool2dShape& s) {
  MaxPool max{Doubles(pool2d_outputs(s)), std::vector<std::uint8_t>(pool2d_outputs(s), 255)};
  for_each_in_window(s, [&](std::size_t xi, std::int64_t place, std::size_t yi) {
    const bool first = max.from[yi] == 255;
    const bool first_nan = std::isnan(x[xi]) && !std::isnan(max.y[yi]);
    if (!first && !first_nan && !(x[xi] > max.y[yi])) return;
    max.y[yi] = x[xi];
    max.from[yi] = static_cast<std::uint8_t>(place);
  });
  return max;
}

inline Doubles max_pool2d_backward(const Doubles& dy, const std::vector<std::uint8_t>& from,
                                   const kernels::Pool2dShape& s) {
  Doubles dx(static_cast<std::size_t>(s.batch * s.height * s.width * s.channels));
  for_each_in_window(s, [&](std::size_t xi, std::int64_t place, std::size_t yi) {
    if (from[yi] == place) dx[xi] += dy[yi];
  });
  return dx;
}

inline Doubles avg_pool2d_forward(const Doubles& x, const kernels::Pool2dShape& s) {
  Doubles y(pool2d_outputs(s));
  for_each_in_window(s, [&](std::size_t xi, std::int64_t, std::size_t yi) {
    y[yi] += x[xi] / static_cast<double>(s.kernel * s.kernel);
  });
  return y;
}

inline Doubles avg_pool2d_backward(const Doubles& dy, const kernels::Pool2dShape& s) {
  Doubles dx(static_cast<std::size_t>(s.batch * s.height * s.width * s.channels));
  for_each_in_window(s, [&](std::size_t xi, std::int64_t, std::size_t yi) {
    dx[xi] += dy[yi] / static_cast<double>(s.kernel * s.kernel);
  });
  return dx;
}

}  // namespace leeway::test::reference
