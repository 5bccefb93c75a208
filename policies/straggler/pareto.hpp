#pragma once
// ParetoStraggler: a factor per iteration, drawn from a heavy-tailed distribution.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// The factor exceeds x with probability x^-alpha, for x from 1 to `cap`; larger factors become
/// `cap`. A smaller alpha gives a heavier tail: without the cap, the mean is infinite for
/// alpha <= 1 and the variance for alpha <= 2.
///
/// Draws u uniformly from (0, 1) and returns u^(-1/alpha) = 2^(-log2(u)/alpha), in fixed point. The
/// logarithm is computed bit by bit, by squaring; the power is a product of roots of two, one per
/// bit.
class ParetoStraggler final : public Straggler {
 public:
  ParetoStraggler(const plan::Pareto& spec, Rng rng) : spec_(spec), rng_(rng) {}
  Slowdown next(Instant now) override;
  void skip(std::uint64_t iterations) override;

 private:
  plan::Pareto spec_;
  Rng rng_;
};

}  // namespace leeway
