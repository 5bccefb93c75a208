#pragma once
// ParetoStraggler: a factor drawn for each iteration from a heavy tail.
#include "policies/straggler/straggler.hpp"

namespace leeway {

/// The factor is above x with probability x^-alpha, for x from 1 up to `cap`; what would be larger
/// is `cap`. The smaller alpha, the heavier the tail: without the cap there would be no mean for
/// alpha <= 1, and no variance for alpha <= 2.
///
/// Draws u uniformly from (0, 1) and returns u^(-1/alpha) = 2^(-log2(u)/alpha), in fixed point: the
/// logarithm bit by bit, by squaring; the power as a product of roots of two, one a bit.
class ParetoStraggler final : public Straggler {
 public:
  ParetoStraggler(const plan::Pareto& spec, Rng chances) : spec_(spec), rng_(chances) {}
  Slowdown next(Instant now) override;

 private:
  plan::Pareto spec_;
  Rng rng_;
};

}  // namespace leeway
