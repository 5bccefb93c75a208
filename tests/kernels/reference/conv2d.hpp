#pragma once
// Reference: convolution by its definition, in double precision.
#include "kernels/conv2d.hpp"
#include "tests/kernels/finite_difference.hpp"

namespace leeway::test::reference {

struct Conv2dGradients {
  Doubles dx, dweight, dbias;
};

/// Calls f(element of x, of weight, of y) for each product of a convolution.
template <class F>
void for_each_product(const kernels::Conv2dShape& s, F f) {
  const std::int64_t oh = s.out_height(), ow = s.out_width(), k = s.kernel;
  const std::int64_t group_c = s.channels / s.groups, group_o = s.outputs / s.groups;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t i = 0; i < oh; ++i)
      for (std::int64_t j = 0; j < ow; ++j)
        for (std::int64_t kh = 0; kh < k; ++kh)
          for (std::int64_t kw = 0; kw < k; ++kw) {
            const std::int64_t h = i * s.stride - s.padding + kh;
            const std::int64_t w = j * s.stride - s.padding + kw;
            if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
            const std::int64_t x = ((b * s.height + h) * s.width + w) * s.channels;
            const std::int64_t y = ((b * oh + i) * ow + j) * s.outputs;
            for (std::int64_t o = 0; o < s.outputs; ++o)
              for (std::int64_t c = 0; c < group_c; ++c)
                f(static_cast<std::size_t>(x + o / group_o * group_c + c),
                  static_cast<std::size_t>(((o * group_c + c) * k + kh) * k + kw),
                  static_cast<std::size_t>(y + o));
          }
}

inline Doubles conv2d_forward(const Doubles& x, const Doubles& weight, const Doubles& bias,
                              const kernels::Conv2dShape& s) {
  Doubles y(static_cast<std::size_t>(s.batch * s.out_height() * s.out_width() * s.outputs));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = bias[i % bias.size()];
  for_each_product(
      s, [&](std::size_t xi, std::size_t wi, std::size_t yi) { y[yi] += x[xi] * weight[wi]; });
  return y;
}

inline Conv2dGradients conv2d_backward(const Doubles& dy, const Doubles& x, const Doubles& weight,
                                       const kernels::Conv2dShape& s) {
  Conv2dGradients g{Doubles(x.size()), Doubles(weight.size()),
                    Doubles(static_cast<std::size_t>(s.outputs))};
  for (std::size_t i = 0; i < dy.size(); ++i) g.dbias[i % g.dbias.size()] += dy[i];
  for_each_product(s, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
    g.dx[xi] += dy[yi] * weight[wi];
    g.dweight[wi] += dy[yi] * x[xi];
  });
  return g;
}

}  // namespace leeway::test::reference
