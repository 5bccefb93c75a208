#pragma once
// Mutant: bugs that can be planted to show that a check finds each of them. Only builds with
// LEEWAY_MUTANTS contain them (tests/mutants); elsewhere planted() is false at compile time.
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace leeway {

enum class Mutant : std::uint8_t {
  none,
  // The staleness rule.
  one_iteration_too_far,   // a pull is answered one iteration beyond the bound
  own_pushes_not_awaited,  // a pull does not wait for earlier pushes of the same worker
  parked_pull_forgotten,   // a parked pull is never answered
  waits_for_the_evicted,   // an evicted worker still counts in min_clock
  waits_for_the_idle,      // an idle worker still counts in min_clock
  clock_counted_twice,     // a push advances the clock by two
  // Pushes.
  repeat_applied,                   // a repeated push is applied again
  acknowledged_too_early,           // a push is acknowledged before it is applied
  push_not_sent_again,              // a push lost with a connection is not sent again
  round_applied_early,              // under bsp, a round is applied after its first push
  dropped_push_applied,             // a round takes pushes that arrive after it was closed
  round_closed_too_early,           // the lead shard closes a round one push too early
  closed_round_not_scaled,          // a round of more pushes than it needs has a larger weight
  bound_falls_behind,               // an adaptive bound falls for iterations that have begun
  straggling_push_not_in_snapshot,  // a snapshot misses later pushes of earlier iterations
  gradient_of_other_weights,        // a worker reports another version of the weights than it used
  residual_forgotten,               // a worker does not add what an encoding has lost
  residual_kept_back,               // a worker encodes the push before a checkpoint
  residual_not_restored,            // the residual of a dropped push stays
  missing_residuals_not_reported,   // a shard does not report that a checkpoint lacks residuals
  overflow_left_out,                // the other pushes of a round with an overflow are applied
  // Host groups.
  group_gradient_not_awaited,  // the lead pushes without the last gradients of its group
  group_samples_twice,         // two workers of a group compute the same sample
  group_session_kept,          // a group goes on after a broken link between its workers
  // Tied weights of two stages.
  tied_gradient_applied_alone,  // one stage's gradient is applied without the other's
  tied_gradient_lost,           // a gradient that waits for an evicted stage is dropped
  sibling_not_awaited,          // a pull does not wait for the other stage's pushes
  // Stages.
  backward_on_newer_weights,     // a backward uses the newest version, not its forward's
  micro_batch_twice,             // an activation goes through the stage twice
  stale_session_taken,           // messages of an earlier session are accepted
  pulled_too_early,              // a pull ignores the later iterations that go forward on it
  own_updates_left_out,          // a pull requests weights without the stage's last update
  stops_in_the_middle,           // a stage stops without finishing started micro-batches
  links_of_stages_forgotten,     // stages continue after a broken link
  applied_buckets_pushed_again,  // a lease's list of applied buckets is ignored
  // Membership.
  fence_forgotten,                  // pushes of an evicted worker are accepted until it is removed
  old_session_accepted,             // pushes of an earlier session are accepted
  admitted_behind,                  // a worker is admitted behind min_clock
  admission_left_uneven,            // a worker starts although the shards' iterations differ
  started_too_early,                // a worker starts before all shards know it
  partial_push_counted_as_trained,  // a partial push counts as trained
  leaver_not_awaited,               // a leaving worker is removed in the middle of an iteration
  stage_joins_alone,                // a pipeline is admitted before all its stages have joined
  // Leases, and messages lost with a connection.
  leased_twice,               // returned samples are leased to two workers
  trained_leased_again,       // a dead worker's trained samples are leased again
  dropped_samples_lost,       // samples of a dropped push are not leased again
  applied_buckets_forgotten,  // a partial iteration is leased again without its applied buckets
  no_data_not_sent,           // no worker is notified that there are no samples
  lease_not_asked_again,      // a lease request lost with a connection is not repeated
  start_not_sent_again,       // a Start lost with a connection is not sent again
  stop_not_sent_again,        // a Stop lost with a connection is not sent again
  order_not_sent_again,       // an order lost with a connection is not sent again
  repeated_order_obeyed,      // an order that is sent again is carried out again
  // Replicas of shards.
  output_not_committed,        // a primary's output leaves before its standby has the input
  takes_over_behind,           // a standby takes over without the last inputs that it has
  rounds_not_seeded,           // a new standby lacks the pushes that wait for their round
  in_sync_too_early,           // a standby counts as in sync without inputs whose outputs have left
  takeover_not_announced,      // other nodes do not learn that a standby has taken over
  standby_beside_primary,      // a new standby is launched on the node of its primary
  standby_launch_not_counted,  // the next launch of a standby has the number of the last one
  left_without_standby,        // a node that leaves ends its shard before the standby is in sync
  // Checkpoints.
  manifest_before_files,     // a manifest is written before a file that it lists
  file_not_flushed,          // a file is renamed before its content is on the disk
  folder_not_flushed,        // the names of new files are not flushed
  old_removed_first,         // earlier checkpoints are removed before the next one is complete
  supply_of_another_moment,  // a manifest has the samples left when it is written
  returned_not_stored,       // a manifest lacks the samples that came back
  versions_restart,          // the versions of a resumed run start at 0
  slots_restart,             // the optimizer of a resumed run starts without state
  progress_restarts,         // the lr schedule of a resumed run starts at its begin
  iterations_restart,        // the iterations of a resumed run start at 0
  epochs_restart,            // the orders of a resumed run are those of the first epoch
  // Nodes of a cluster.
  launch_not_counted,         // the next launch of a worker has the number of the last one
  launch_not_announced,       // other nodes do not learn on which node a worker is launched
  loss_of_node_not_reported,  // actors do not learn that a node is gone
  link_loss_not_reported,     // agents do not report lost connections to the coordinator
  loading_not_reported,       // an agent does not report that it loads the data
  cut_off_not_resumed,        // workers that an outage has ended do not begin again
  offer_forgotten,            // a node that waits for a worker is not answered
  lost_node_not_called,       // a lost node that runs again does not take part again
  second_job_taken,           // a node that hosts a job takes another one
  count_,
};

#ifdef LEEWAY_MUTANTS
/// The mutant of this process. Do not call planted() in the initializer of a constant: the compiler
/// evaluates it, and gets false.
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
