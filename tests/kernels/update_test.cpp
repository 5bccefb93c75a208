#include "kernels/update.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>

#include "tests/kernels/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

/// Updates `count` random floats out of place, in place and element by element, and requires equal
/// results.
template <class Formula>
void require_streams_right(Formula formula, std::int64_t count, Rng& rng) {
  const Floats w = random_floats(rng, count), g = random_floats(rng, count);
  const Floats state[] = {random_floats(rng, count), Floats(w.size(), 0.5f),
                          Floats(w.size(), 0.25f)};
  Floats w_out = poisoned(count), w_in = w;
  Floats out[] = {poisoned(count), poisoned(count), poisoned(count)};
  Floats in[] = {state[0], state[1], state[2]};
  if constexpr (std::is_same_v<Formula, kernels::AdaGradFormula>)
    for (std::size_t i = 0; i < w.size(); ++i) in[0][i] = std::abs(state[0][i]);
  const Floats before[] = {in[0], in[1], in[2]};
  const bool clips = rng.one_in(2);
  const float scale = clips ? 0.5f : 1, limit = clips ? 0.3f : kernels::Clipping::kNoLimit;
  kernels::update({.count = count,
                   .w_out = w_out.data(),
                   .w = w.data(),
                   .state_out = {out[0].data(), out[1].data(), out[2].data()},
                   .state = {before[0].data(), before[1].data(), before[2].data()},
                   .g = g.data(),
                   .clipping = {scale, limit}},
                  formula);
  kernels::update({.count = count,
                   .w_out = w_in.data(),
                   .w = w_in.data(),
                   .state_out = {in[0].data(), in[1].data(), in[2].data()},
                   .state = {in[0].data(), in[1].data(), in[2].data()},
                   .g = g.data(),
                   .clipping = {scale, limit}},
                  formula);
  RC_ASSERT(w_in == w_out);
  Floats w_one = w, one[] = {before[0], before[1], before[2]};
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float from = std::clamp(scale * g[i], -limit, limit);
    if constexpr (Formula::kSlots == 0) formula(w_one[i], from);
    if constexpr (Formula::kSlots == 1) formula(w_one[i], one[0][i], from);
    if constexpr (Formula::kSlots == 2) formula(w_one[i], one[0][i], one[1][i], from);
    if constexpr (Formula::kSlots == 3) formula(w_one[i], one[0][i], one[1][i], one[2][i], from);
  }
  RC_ASSERT(worst_error(w_out, w_one) < 1e-5);
  for (std::size_t s = 0; s < Formula::kSlots; ++s) {
    RC_ASSERT(in[s] == out[s]);
    RC_ASSERT(worst_error(out[s], one[s]) < 1e-5);
  }
}

}  // namespace

TEST_CASE("an update gives the same result in place, out of place and element by element",
          "[update]") {
  rc::prop("an update equals its formula", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const std::int64_t count = *rc::gen::inRange(0, 150);
    require_streams_right(kernels::SgdFormula{0.1f, 0.01f}, count, rng);
    require_streams_right(kernels::MomentumFormula{0.1f, 0.01f, 0.9f, 0.5f}, count, rng);
    require_streams_right(kernels::NesterovFormula{0.1f, 0.01f, 0.9f, 0.5f}, count, rng);
    require_streams_right(
        kernels::DelayedNesterovFormula{0.01f, 0.25f, 0.05f, 0.9f, 0.5f, 0.09f, 0}, count, rng);
    require_streams_right(
        kernels::AdamFormula{0.1f, 0.01f, 0.99f, 0.9f, 0.1f, 0.99f, 0.01f, 1.5f, 1e-3f}, count,
        rng);
    require_streams_right(
        kernels::AmsGradFormula{{0.1f, 0.01f, 0.99f, 0.9f, 0.1f, 0.99f, 0.01f, 1.5f, 1e-3f}}, count,
        rng);
    require_streams_right(kernels::OrderedMomentumFormula{0.1f, 0.01f, 0.9f, 0.5f, 0.2f}, count,
                          rng);
    require_streams_right(
        kernels::NAdamFormula{0.1f, 0.2f, 0.01f, 0.99f, 0.9f, 0.1f, 0.99f, 0.01f, 1.5f, 1e-3f},
        count, rng);
    require_streams_right(kernels::LionFormula{0.1f, 0.99f, 0.9f, 0.99f, 0.01f}, count, rng);
    require_streams_right(kernels::AdaGradFormula{0.1f, 0.01f, 0.5f, 1e-3f}, count, rng);
  });
}
