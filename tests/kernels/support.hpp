#pragma once
// Helpers for kernel tests: random and poisoned buffers, comparison, splits by rows.
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/rng.hpp"
#include "kernels/convert.hpp"
#include "tensor/tensor.hpp"

namespace leeway::test {

using Floats = std::vector<float>;

inline Floats random_floats(Rng& rng, std::int64_t count, double scale = 1) {
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(scale * (2 * rng.uniform() - 1));
  return values;
}

/// NaN in all elements, which reveals elements that a kernel does not write.
inline Floats poisoned(std::int64_t count) {
  return Floats(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

/// The values, rounded to bf16 or f16.
inline Floats rounded_to(DType type, const Floats& values) {
  Floats rounded(values.size());
  std::vector<std::uint16_t> narrow(values.size());
  const auto count = static_cast<std::int64_t>(values.size());
  kernels::convert(narrow.data(), type, values.data(), DType::f32, count);
  kernels::convert(rounded.data(), DType::f32, narrow.data(), type, count);
  return rounded;
}

/// The largest |a - b| / (1 + |b|); infinite if the sizes differ or an element is NaN.
template <class A, class B>
double worst_error(const A& a, const B& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double expected = static_cast<double>(b[i]);
    const double error = std::abs(static_cast<double>(a[i]) - expected) / (1 + std::abs(expected));
    if (!(error <= worst))
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return worst;
}

/// Splits `rows` rows of `row_floats` floats at random rows; each slice has its own memory. Without
/// `rng` there is one slice.
template <class T>
struct RandomSlices {
  std::vector<Floats> memory;
  std::vector<RowSlice<T>> slices;

  static RandomSlices of(const Floats& whole, std::int64_t rows, std::int64_t row_floats,
                         Rng* rng) {
    RandomSlices split;
    for (std::int64_t row = 0; row < rows;) {
      const auto left = static_cast<std::uint64_t>(rows - row);
      const auto take = static_cast<std::int64_t>(rng ? 1 + rng->below(left) : left);
      split.memory.emplace_back(whole.begin() + row * row_floats,
                                whole.begin() + (row + take) * row_floats);
      split.slices.push_back({row, take, nullptr});
      row += take;
    }
    for (std::size_t i = 0; i < split.slices.size(); ++i)
      split.slices[i].data = split.memory[i].data();
    return split;
  }

  Floats joined() const {
    Floats all;
    for (const auto& part : memory) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
};

}  // namespace leeway::test
