#pragma once
// Mutant: bugs that can be planted, to see which check finds each. Only a build of its own, with
// LEEWAY_MUTANTS defined, has them (tests/mutants): elsewhere planted() is false when compiled.
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace leeway {

enum class Mutant : std::uint8_t {
  none,
  // The rule.
  one_iteration_too_far,   // a pull is let through one iteration beyond the bound
  own_pushes_not_awaited,  // a pull does not wait for the earlier pushes of its own worker
  parked_pull_forgotten,   // a pull that has to wait is lost
  waits_for_the_evicted,   // who is out still counts in the minimum
  waits_for_the_idle,      // so does who has no samples
  clock_counted_twice,     // a push moves the clock by two
  // Pushes.
  repeat_applied,                   // a push that comes again is applied again
  acknowledged_too_early,           // a push is acknowledged before it is applied
  push_not_sent_again,              // what was lost with a connection stays lost
  round_applied_early,              // under bsp, a round is applied when the first has pushed it
  dropped_push_applied,             // a round takes the pushes that it was closed without
  round_closed_too_early,           // backup workers: the lead is content with one push less
  bound_falls_behind,               // an adaptive bound falls for iterations that have begun
  straggling_push_not_in_snapshot,  // a fork misses the pushes that come after it and belong to it
  gradient_of_other_weights,        // a worker computes on weights of another version than it says
  // Blocks that two stages of a pipeline share.
  tied_gradient_applied_alone,  // one stage's gradient is applied without waiting for the other's
  tied_gradient_lost,           // what waits for a stage that is evicted is forgotten
  sibling_not_awaited,          // a pull does not wait for the other stage's pushes
  // Stages.
  backward_on_newer_weights,     // a backward takes the newest version, whatever its forward read
  micro_batch_twice,             // an activation is kept, and goes through the stage again
  stale_start_taken,             // messages of an earlier Start are taken as if of the present one
  pulled_too_early,              // a pull leaves out the later iterations that go forward on it
  own_updates_left_out,          // it asks for weights that lack the stage's last update
  stops_in_the_middle,           // a stage that is told to stop does not finish what has begun
  links_of_stages_forgotten,     // stages go on over a link that was broken
  applied_buckets_pushed_again,  // the list of what has the samples of an iteration is not looked
                                 // at
  // Membership.
  fence_forgotten,                  // pushes of an evicted worker are taken until it is removed
  old_incarnation_accepted,         // so are those of an earlier incarnation
  admitted_behind,                  // a worker is admitted behind the minimum
  admission_left_uneven,            // a worker starts where the shards do not agree upon
  started_too_early,                // a worker starts before all shards know it
  partial_push_counted_as_trained,  // a push that only some shards have counts as trained
  leaver_not_awaited,  // who is asked to leave is forgotten in the middle of an iteration
  stage_joins_alone,   // a pipeline is admitted before all its stages have joined
  // Data, and messages lost with a connection.
  leased_twice,          // samples that come back are leased to two
  trained_leased_again,  // of a dead worker's lease, what was trained comes back too
  dropped_samples_lost,  // what a late worker was to train is forgotten
  // The samples of a partial iteration go back without the list of what has them.
  applied_buckets_forgotten,
  no_data_not_sent,  // nobody is told that there are no samples
  lease_not_asked_again,
  start_not_sent_again,
  stop_not_sent_again,
  count_,
};

#ifdef LEEWAY_MUTANTS
/// The one that is planted in this process. (Not to be asked for in the initializer of a constant,
/// which is tried at compile time, where none is.)
inline std::atomic<Mutant> planted_mutant{Mutant::none};

constexpr bool planted(Mutant mutant) {
  return std::is_constant_evaluated() ? false
                                      : planted_mutant.load(std::memory_order_relaxed) == mutant;
}
#else
constexpr bool planted(Mutant) {
  return false;
}
#endif

}  // namespace leeway
