#include <rapidcheck/catch.h>

#include <algorithm>

#include "kernels/accumulate.hpp"
#include "kernels/finite.hpp"
#include "kernels/relu.hpp"
#include "kernels/squares.hpp"
#include "tests/kernels/support.hpp"

using namespace leeway;
using namespace leeway::test;

TEST_CASE("relu keeps positive elements and passes their gradients, also in place", "[relu]") {
  rc::prop("relu equals its definition", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t count = *rc::gen::inRange(0, 200);
    const Floats x = random_floats(rng, count), dy = random_floats(rng, count);
    Floats y = poisoned(count), dx = poisoned(count), in_place = x, d_in_place = dy;
    kernels::relu_forward(y.data(), x.data(), count);
    kernels::relu_backward(dx.data(), dy.data(), y.data(), count);
    kernels::relu_forward(in_place.data(), in_place.data(), count);
    kernels::relu_backward(d_in_place.data(), d_in_place.data(), in_place.data(), count);
    for (std::size_t i = 0; i < x.size(); ++i) {
      RC_ASSERT(y[i] == std::max(x[i], 0.0f));
      RC_ASSERT(dx[i] == (x[i] > 0 ? dy[i] : 0.0f));
    }
    RC_ASSERT(in_place == y);
    RC_ASSERT(d_in_place == dx);
  });
}

TEST_CASE("relu propagates NaN", "[relu]") {
  Floats x(40, -1.0f);
  x[3] = x[39] = NAN;
  kernels::relu_forward(x.data(), x.data(), 40);
  REQUIRE(std::isnan(x[3]));
  REQUIRE(std::isnan(x[39]));
  REQUIRE(x[4] == 0);
}

TEST_CASE("accumulate assigns and adds scaled gradients", "[accumulate]") {
  rc::prop("accumulate equals its definition", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t count = *rc::gen::inRange(0, 200);
    const Floats g1 = random_floats(rng, count), g2 = random_floats(rng, count);
    const float scale = 0.375f;
    Floats sum = poisoned(count);
    kernels::accumulate(sum.data(), g1.data(), scale, count, kernels::Write::assign);
    kernels::accumulate(sum.data(), g2.data(), scale, count, kernels::Write::add);
    std::vector<double> expected;
    for (std::size_t i = 0; i < g1.size(); ++i)
      expected.push_back(0.375 * (static_cast<double>(g1[i]) + static_cast<double>(g2[i])));
    RC_ASSERT(worst_error(sum, expected) < 1e-6);
  });
}

TEST_CASE("accumulate gives the same bits however the array is divided into calls",
          "[accumulate]") {
  rc::prop("pieces equal the whole", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t count = *rc::gen::inRange(1, 400);
    const Floats start = random_floats(rng, count), g = random_floats(rng, count);
    const float scale = 1.0f / 3;
    Floats whole = start, pieces = start;
    kernels::accumulate(whole.data(), g.data(), scale, count, kernels::Write::add);
    for (std::int64_t i = 0; i < count;) {
      const auto left = static_cast<std::uint64_t>(count - i);
      const auto size = static_cast<std::int64_t>(1 + rng.below(left));
      kernels::accumulate(pieces.data() + i, g.data() + i, scale, size, kernels::Write::add);
      i += size;
    }
    RC_ASSERT(whole == pieces);
  });
}

TEST_CASE("sum_of_squares adds in double", "[squares]") {
  rc::prop("sum_of_squares is the sum", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t count = *rc::gen::inRange(0, 3000);
    const Floats x = random_floats(rng, count, 1e20);
    double sum = 0;
    for (const float element : x) sum += static_cast<double>(element) * element;
    RC_ASSERT(std::abs(kernels::sum_of_squares(x.data(), count) - sum) <= 1e-12 * sum);
  });
}

TEST_CASE("find_non_finite finds the first NaN or infinity", "[finite]") {
  rc::prop("find_non_finite returns the first index", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t count = *rc::gen::inRange(1, 10000);
    Floats x = random_floats(rng, count, 1e38);
    RC_ASSERT(kernels::find_non_finite(x.data(), count) == -1);
    const auto below = [&](std::int64_t n) { return rng.below(static_cast<std::uint64_t>(n)); };
    const std::size_t first = below(count);
    const float bad[] = {NAN, INFINITY, -INFINITY, -NAN};
    x[first] = bad[rng.below(4)];
    if (first + 1 < x.size()) x[first + 1 + rng.below(x.size() - first - 1)] = NAN;
    RC_ASSERT(kernels::find_non_finite(x.data(), count) == static_cast<std::int64_t>(first));
  });
  REQUIRE(kernels::find_non_finite(nullptr, 0) == -1);
}
