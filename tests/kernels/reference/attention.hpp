#pragma once
// Reference: attention by its definition, in double precision, with all weights in memory.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention.hpp"

namespace leeway::test::reference {

using Doubles = std::vector<double>;

struct Attention {
  kernels::AttentionShape s;

  std::size_t in_x(std::int64_t b, std::int64_t t, int which, std::int64_t h) const {
    return static_cast<std::size_t>(((b * s.tokens + t) * 3 + which) * s.features +
                                    h * s.head_features());
  }
  std::size_t in_y(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return static_cast<std::size_t>((b * s.tokens + t) * s.features + h * s.head_features());
  }
  double product(const Doubles& a, std::size_t at, const Doubles& b, std::size_t other) const {
    double sum = 0;
    for (std::size_t f = 0; f < static_cast<std::size_t>(s.head_features()); ++f)
      sum += a[at + f] * b[other + f];
    return sum;
  }
  void add(Doubles& to, std::size_t at, double factor, const Doubles& from,
           std::size_t other) const {
    for (std::size_t f = 0; f < static_cast<std::size_t>(s.head_features()); ++f)
      to[at + f] += factor * from[other + f];
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(s.head_features())); }

  /// The weights of query t for keys 0 to t, and the logarithm of their sum.
  Doubles weights(const Doubles& x, std::int64_t b, std::int64_t t, std::int64_t h,
                  double& log_sum) const {
    Doubles w;
    for (std::int64_t k = 0; k <= t; ++k)
      w.push_back(scale() * product(x, in_x(b, t, 0, h), x, in_x(b, k, 1, h)));
    const double largest = *std::max_element(w.begin(), w.end());
    double sum = 0;
    for (double& value : w) sum += value = std::exp(value - largest);
    for (double& value : w) value /= sum;
    log_sum = largest + std::log(sum);
    return w;
  }

  template <class F>
  void for_each_query(F f) const {
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t t = 0; t < s.tokens; ++t) f(b, t, h);
  }

  struct Forward {
    Doubles y, log_sum;
  };
  Forward forward(const Doubles& x) const {
    Forward out{Doubles(x.size() / 3), {}};
    for_each_query([&](std::int64_t b, std::int64_t t, std::int64_t h) {
      double log_sum = 0;
      const Doubles w = weights(x, b, t, h, log_sum);
      out.log_sum.push_back(log_sum);
      for (std::int64_t k = 0; k <= t; ++k)
        add(out.y, in_y(b, t, h), w[static_cast<std::size_t>(k)], x, in_x(b, k, 2, h));
    });
    return out;
  }

  Doubles backward(const Doubles& dy, const Doubles& x) const {
    Doubles dx(x.size());
    for_each_query([&](std::int64_t b, std::int64_t t, std::int64_t h) {
      double ignored = 0;
      const Doubles w = weights(x, b, t, h, ignored);
      Doubles slope;
      double mean = 0;
      for (std::int64_t k = 0; k <= t; ++k) {
        slope.push_back(product(dy, in_y(b, t, h), x, in_x(b, k, 2, h)));
        mean += w[static_cast<std::size_t>(k)] * slope.back();
      }
      for (std::int64_t k = 0; k <= t; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const double of_logit = scale() * w[i] * (slope[i] - mean);
        add(dx, in_x(b, k, 2, h), w[i], dy, in_y(b, t, h));
        add(dx, in_x(b, t, 0, h), of_logit, x, in_x(b, k, 1, h));
        add(dx, in_x(b, k, 1, h), of_logit, x, in_x(b, t, 0, h));
      }
    });
    return dx;
  }
};

}  // namespace leeway::test::reference
