#pragma once
// Reference: batch_norm (normalises columns) and layer_norm (normalises rows) by their definitions,
// in double precision.
#include <cmath>

#include "kernels/batch_norm.hpp"
#include "tests/kernels/finite_difference.hpp"

namespace leeway::test::reference {

/// The elements that share a mean.
enum class Axis { columns, rows };

struct Norm {
  Doubles y, mean, variance, inv_std;
};

struct NormGradients {
  Doubles dx, dgamma, dbeta;
};

/// Calls f(element, its group, its column).
template <class F>
void for_each_element(Axis axis, const kernels::NormShape& s, F f) {
  for (std::int64_t r = 0; r < s.rows; ++r)
    for (std::int64_t c = 0; c < s.columns; ++c)
      f(static_cast<std::size_t>(r * s.columns + c),
        static_cast<std::size_t>(axis == Axis::columns ? c : r), static_cast<std::size_t>(c));
}

inline Norm norm_forward(Axis axis, const Doubles& x, const Doubles& gamma, const Doubles& beta,
                         const kernels::NormShape& s) {
  const auto groups = static_cast<std::size_t>(axis == Axis::columns ? s.columns : s.rows);
  const double n = static_cast<double>(axis == Axis::columns ? s.rows : s.columns);
  Norm norm{Doubles(x.size()), Doubles(groups), Doubles(groups), Doubles(groups)};
  for_each_element(axis, s,
                   [&](std::size_t i, std::size_t g, std::size_t) { norm.mean[g] += x[i] / n; });
  for_each_element(axis, s, [&](std::size_t i, std::size_t g, std::size_t) {
    norm.variance[g] += (x[i] - norm.mean[g]) * (x[i] - norm.mean[g]) / n;
  });
  for (std::size_t g = 0; g < groups; ++g)
    norm.inv_std[g] = 1 / std::sqrt(norm.variance[g] + static_cast<double>(s.epsilon));
  for_each_element(axis, s, [&](std::size_t i, std::size_t g, std::size_t c) {
    norm.y[i] = (x[i] - norm.mean[g]) * norm.inv_std[g] * gamma[c] + beta[c];
  });
  return norm;
}

inline NormGradients norm_backward(Axis axis, const Doubles& dy, const Doubles& x,
                                   const Doubles& gamma, const Norm& norm,
                                   const kernels::NormShape& s) {
  const double n = static_cast<double>(axis == Axis::columns ? s.rows : s.columns);
  NormGradients g{Doubles(x.size()), Doubles(gamma.size()), Doubles(gamma.size())};
  Doubles sum(norm.mean.size()), product(norm.mean.size());
  const auto xhat = [&](std::size_t i, std::size_t group) {
    return (x[i] - norm.mean[group]) * norm.inv_std[group];
  };
  for_each_element(axis, s, [&](std::size_t i, std::size_t group, std::size_t c) {
    g.dgamma[c] += dy[i] * xhat(i, group);
    g.dbeta[c] += dy[i];
    sum[group] += dy[i] * gamma[c] / n;
    product[group] += dy[i] * gamma[c] * xhat(i, group) / n;
  });
  for_each_element(axis, s, [&](std::size_t i, std::size_t group, std::size_t c) {
    g.dx[i] =
        norm.inv_std[group] * (dy[i] * gamma[c] - sum[group] - xhat(i, group) * product[group]);
  });
  return g;
}

}  // namespace leeway::test::reference
