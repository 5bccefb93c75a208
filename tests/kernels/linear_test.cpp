#include "kernels/linear.hpp"

#include <rapidcheck/catch.h>

#include "kernels/threads.hpp"
#include "tests/kernels/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// A random layer and its results in double precision.
struct Example {
  Example(std::int64_t batch, std::int64_t inputs, std::int64_t outputs, Rng& rng)
      : shape{batch, inputs, outputs},
        x(random_floats(rng, batch * inputs)),
        weight(random_floats(rng, outputs * inputs)),
        bias(random_floats(rng, outputs)),
        dy(random_floats(rng, batch * outputs)),
        y(dy.size()),
        dx(x.size()),
        dweight(weight.size()),
        dbias(bias.size()) {
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t o = 0; o < outputs; ++o) {
        const auto bo = static_cast<std::size_t>(b * outputs + o);
        const double d = dy[bo];
        y[bo] = bias[static_cast<std::size_t>(o)];
        dbias[static_cast<std::size_t>(o)] += d;
        for (std::int64_t i = 0; i < inputs; ++i) {
          const auto bi = static_cast<std::size_t>(b * inputs + i);
          const auto oi = static_cast<std::size_t>(o * inputs + i);
          y[bo] += static_cast<double>(x[bi]) * static_cast<double>(weight[oi]);
          dx[bi] += d * static_cast<double>(weight[oi]);
          dweight[oi] += d * static_cast<double>(x[bi]);
        }
      }
  }

  kernels::LinearShape shape;
  Floats x, weight, bias, dy;
  std::vector<double> y, dx, dweight, dbias;
};

/// Compares forward and backward with the reference. Parameters and gradients are split by `rng`,
/// or whole if it is null.
void require_right(const Example& e, Rng* rng) {
  const auto [batch, inputs, outputs, precision] = e.shape;
  const auto weight = RandomSlices<const float>::of(e.weight, outputs, inputs, rng);
  const auto bias = RandomSlices<const float>::of(e.bias, outputs, 1, rng);
  const auto dweight = RandomSlices<float>::of(poisoned(outputs * inputs), outputs, inputs, rng);
  const auto dbias = RandomSlices<float>::of(poisoned(outputs), outputs, 1, rng);
  Floats y = poisoned(batch * outputs), dx = poisoned(batch * inputs);
  kernels::linear_forward(y.data(), e.x.data(), weight.slices, bias.slices, e.shape);
  kernels::linear_backward(dx.data(), dweight.slices, dbias.slices, e.dy.data(), e.x.data(),
                           weight.slices, e.shape);
  RC_ASSERT(worst_error(y, e.y) < 1e-5);
  RC_ASSERT(worst_error(dx, e.dx) < 1e-5);
  RC_ASSERT(worst_error(dweight.joined(), e.dweight) < 1e-5);
  RC_ASSERT(worst_error(dbias.joined(), e.dbias) < 1e-5);
}

}  // namespace

TEST_CASE("linear equals its definition, with whole and with split parameters", "[linear]") {
  kernels::use_one_compute_thread();
  rc::prop("linear equals its definition", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Example example(*rc::gen::inRange(0, 20), *rc::gen::inRange(1, 60),
                          *rc::gen::inRange(1, 40), rng);
    require_right(example, nullptr);
    require_right(example, &rng);
  });
}

TEST_CASE("linear skips the gradient of its input if it is not requested", "[linear]") {
  kernels::use_one_compute_thread();
  Rng rng(2);
  const Example e(4, 3, 5, rng);
  const auto weight = RandomSlices<const float>::of(e.weight, 5, 3, nullptr);
  const auto dweight = RandomSlices<float>::of(poisoned(15), 5, 3, nullptr);
  const auto dbias = RandomSlices<float>::of(poisoned(5), 5, 1, nullptr);
  kernels::linear_backward(nullptr, dweight.slices, dbias.slices, e.dy.data(), e.x.data(),
                           weight.slices, e.shape);
  REQUIRE(worst_error(dweight.joined(), e.dweight) < 1e-6);
}

TEST_CASE("linear refuses a parameter whose slices have gaps", "[linear]") {
  Floats memory(8);
  const std::vector<RowSlice<const float>> gap = {{0, 1, memory.data()}, {2, 1, memory.data()}};
  const std::vector<RowSlice<const float>> whole = {{0, 3, memory.data()}};
  const std::vector<RowSlice<const float>> too_few = {{0, 2, memory.data()}};
  Floats y(3), x(1);
  REQUIRE_THROWS_AS(kernels::linear_forward(y.data(), x.data(), gap, whole, {1, 1, 3}),
                    CheckFailed);
  REQUIRE_THROWS_AS(kernels::linear_forward(y.data(), x.data(), whole, too_few, {1, 1, 3}),
                    CheckFailed);
}
