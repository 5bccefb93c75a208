#include "policies/optimizer/muon.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "core/rng.hpp"
#include "kernels/executor.hpp"
#include "policies/optimizer/orthogonal.hpp"

using namespace leeway;

namespace {

constexpr std::size_t kPadding = 3;

/// A matrix in double, row-major.
struct Matrix {
  std::size_t rows, columns;
  std::vector<double> values;
  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

Matrix drawn(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  Rng rng(seed);
  Matrix matrix{rows, columns, {}};
  for (std::size_t i = 0; i < rows * columns; ++i) matrix.values.push_back(rng.uniform() - 0.5);
  return matrix;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t k = 0; k < a.columns; ++k)
      for (std::size_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix b{a.columns, a.rows, std::vector<double>(a.values.size())};
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.columns; ++j) b.at(j, i) = a.at(i, j);
  return b;
}

/// The published iteration, on the transpose of a tall matrix.
Matrix newton_schulz(Matrix x) {
  if (x.rows > x.columns) return transposed(newton_schulz(transposed(x)));
  double squares = 0;
  for (const double value : x.values) squares += value * value;
  for (double& value : x.values) value /= std::sqrt(squares);
  for (int i = 0; i < 5; ++i) {
    const Matrix gram = product(x, transposed(x));
    Matrix bracket = product(gram, gram);
    for (std::size_t j = 0; j < bracket.values.size(); ++j)
      bracket.values[j] = -4.7750 * gram.values[j] + 2.0315 * bracket.values[j];
    const Matrix more = product(bracket, x);
    for (std::size_t j = 0; j < x.values.size(); ++j)
      x.values[j] = 3.4445 * x.values[j] + more.values[j];
  }
  return x;
}

std::vector<float> floats(const Matrix& matrix) {
  return {matrix.values.begin(), matrix.values.end()};
}

}  // namespace

TEST_CASE("a matrix is orthogonalised by the published iteration", "[optimizer]") {
  for (const auto& [rows, columns] :
       {std::pair<std::size_t, std::size_t>{5, 5}, {3, 17}, {17, 3}, {1, 6}, {6, 1}, {40, 24}}) {
    CAPTURE(rows, columns);
    const Matrix x = drawn(rows, columns, rows * 100 + columns);
    auto found = floats(x);
    orthogonalise(found.data(), static_cast<std::int64_t>(rows),
                  static_cast<std::int64_t>(columns));
    const Matrix expected = newton_schulz(x);
    for (std::size_t i = 0; i < found.size(); ++i)
      REQUIRE(std::abs(static_cast<double>(found[i]) - expected.values[i]) < 1e-3);
    // Each singular value is near 1, so that the squares add up to their number.
    double squares = 0;
    for (const float value : found) squares += static_cast<double>(value * value);
    const auto number = static_cast<double>(std::min(rows, columns));
    CHECK((squares > 0.4 * number && squares < 1.5 * number));
  }
  std::vector<float> zeros(6);
  orthogonalise(zeros.data(), 2, 3);
  CHECK(zeros == std::vector<float>(6));
}

TEST_CASE("muon steps along the orthogonalised velocity, and decays apart from it", "[optimizer]") {
  constexpr std::size_t kRows = 4, kColumns = 7, kCount = kRows * kColumns;
  constexpr double kRate = 0.1, kDecay = 0.3, kFactor = 0.9;
  const Muon muon({.factor = kFactor}, kDecay);
  const auto on = make_cpu_executor();
  for (const double weight : {1.0, 0.25}) {
    std::vector<float> w = floats(drawn(kRows, kColumns, 1)), m(kCount + kPadding),
                       unused(kCount + kPadding, 5.0f);
    w.resize(kCount + kPadding, 9.0f);
    Matrix velocity{kRows, kColumns, std::vector<double>(kCount)};
    std::vector<double> reference(w.begin(), w.end());
    for (std::uint64_t push = 0; push < 4; ++push) {
      const Matrix gradient = drawn(kRows, kColumns, 10 + push);
      auto g = floats(gradient);
      g.resize(kCount + kPadding);
      muon.update(
          *on,
          {.count = static_cast<std::int64_t>(w.size()),
           .w_out = w.data(),
           .w = w.data(),
           .state_out = {m.data(), unused.data()},
           .state = {m.data(), unused.data()},
           .g = g.data()},
          {.weight = weight, .learning_rate = kRate, .floats = kCount, .columns = kColumns});
      const double keep = std::pow(kFactor, weight), gain = (1 - keep) / (1 - kFactor);
      Matrix direction = velocity;
      for (std::size_t i = 0; i < kCount; ++i) {
        velocity.values[i] = keep * velocity.values[i] + gain * gradient.values[i];
        direction.values[i] = gain * gradient.values[i] + keep * velocity.values[i];
      }
      direction = newton_schulz(direction);
      for (std::size_t i = 0; i < kCount; ++i)
        reference[i] -= kRate * weight *
                        (0.2 * std::sqrt(static_cast<double>(kColumns)) * direction.values[i] +
                         kDecay * reference[i]);
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      CHECK(std::abs(static_cast<double>(w[i]) - reference[i]) < 1e-3);
      CHECK(std::abs(static_cast<double>(m[i]) - velocity.values[i]) < 1e-5);
    }
    for (std::size_t i = kCount; i < w.size(); ++i) CHECK(w[i] == 9.0f);
    CHECK(unused == std::vector<float>(kCount + kPadding, 5.0f));
  }
}
