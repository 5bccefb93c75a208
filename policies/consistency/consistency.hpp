#pragma once
// Consistency: decides which pulls wait and which pushes form an update.
//
// A policy knows only integers. The roles carry out its decisions: actors/shard/apply_policy.hpp
// for pushes, actors/scheduler/lease_book.hpp for leases.
// Source: Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter
// Server", NIPS 2013, section 3.
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "core/ids.hpp"
#include "core/mutant.hpp"
#include "plan/plan.hpp"
#include "policies/consistency/grace_window.hpp"
#include "policies/consistency/round_size.hpp"

namespace leeway {

/// A staleness bound under which no pull waits for another worker.
inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

/// The staleness rule. A pull for `iteration` that carries `own_clock` may be answered iff
///   iteration - min_clock <= bound   and   clock >= own_clock,
/// where `clock` is the worker's clock at the shard and `min_clock` the least clock of the live
/// participants there. The second condition allows a pull to overtake a push.
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
  /// The staleness bound s; kUnbounded if there is none. A bound that moves is announced by the
  /// scheduler, and is never smaller than this.
  virtual std::int64_t bound() const = 0;
  /// The bound at the start of a run.
  virtual std::int64_t first_bound() const { return bound(); }
  /// The largest bound that the scheduler may announce.
  virtual std::int64_t largest_bound() const { return bound(); }
  bool has_moving_bound() const { return bound() < largest_bound(); }
  /// True if the pushes of an iteration are a round: summed in worker order and applied as one
  /// update. False if each push is applied on arrival.
  virtual bool by_rounds() const { return false; }
  /// The number of pushes that close a round. Others are dropped, and their samples are leased
  /// again.
  virtual RoundSize round_size() const { return {}; }
  /// How long a round that has these pushes waits for more.
  virtual GraceWindow grace() const { return GraceWindow::fixed({}); }
};

/// The policy that the plan names.
std::unique_ptr<Consistency> make_consistency(const plan::Consistency& spec);

}  // namespace leeway
