#pragma once
// Consistency: who waits. Integers in, decision out; nothing else in the system decides it.
//
// Source: Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter
// Server", NIPS 2013, section 3.
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "core/ids.hpp"
#include "core/mutant.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// A staleness bound that never makes anybody wait.
inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

/// The staleness rule. A pull for `iteration` that carries `own_clock` may be answered iff
///   iteration - min_clock <= bound   and   clock >= own_clock,
/// where `clock` is the asking worker's clock at the shard and `min_clock` the least clock of the
/// live participants there. The second half makes it harmless that a pull overtakes a push.
constexpr bool may_start(Iteration iteration, Clock min_clock, Clock clock, Clock own_clock,
                         std::int64_t bound) {
  if (clock < own_clock && !planted(Mutant::own_pushes_not_awaited)) return false;
  if (planted(Mutant::one_iteration_too_far)) min_clock = min_clock + 1;
  return bound == kUnbounded || iteration.value() - min_clock.value() <= bound;
}

class Consistency {
 public:
  virtual ~Consistency() = default;
  virtual std::string_view name() const = 0;
  /// The staleness bound s for `iteration`; kUnbounded for none. Where the scheduler moves it, this
  /// is what holds until it announces another.
  virtual std::int64_t bound(Iteration iteration) const = 0;
  /// The largest that the bound may become.
  virtual std::int64_t largest_bound() const { return bound(Iteration()); }
  /// True when pushes wait for their whole round, are summed in worker order and applied once;
  /// false when each is applied on arrival.
  virtual bool by_rounds() const { return false; }
  /// By rounds: true when a round is closed with the first pushes of it, and late ones are dropped.
  virtual bool drops_stragglers() const { return false; }
  /// By rounds: of `live` workers with samples, how many pushes make a round.
  virtual std::size_t contributors(std::size_t live) const { return live; }
};

/// By the plan.
std::unique_ptr<Consistency> make_consistency(const plan::Consistency& spec);

}  // namespace leeway
