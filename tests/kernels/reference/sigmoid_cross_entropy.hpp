#pragma once
// Reference: sigmoid cross entropy by its definition, in double precision.
#include <cmath>
#include <cstdint>

#include "tests/kernels/finite_difference.hpp"

namespace leeway::test::reference {

struct SigmoidLoss {
  double loss = 0;
  std::int64_t correct = 0;
  Doubles dy;
};

inline SigmoidLoss sigmoid_cross_entropy(const Doubles& y, const Doubles& t) {
  SigmoidLoss result;
  const double n = static_cast<double>(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    // -log s(y) and -log(1 - s(y)), which is -log s(-y), without overflow.
    const double yes = std::log1p(std::exp(-std::abs(y[i]))) + (y[i] < 0 ? -y[i] : 0);
    const double no = std::log1p(std::exp(-std::abs(y[i]))) + (y[i] > 0 ? y[i] : 0);
    result.loss += (t[i] * yes + (1 - t[i]) * no) / n;
    result.correct += (y[i] > 0) == (t[i] > 0.5);
    result.dy.push_back((1 / (1 + std::exp(-y[i])) - t[i]) / n);
  }
  return result;
}

}  // namespace leeway::test::reference
