#pragma once
// ApplyPolicy: when the pushes that a shard has accepted are applied, and when clocks move.
//
//   ApplyOnArrival     each push is one update (ssp, asp, adaptive, auto)
//   ApplyFullRounds    a round is one update, once every live worker has pushed it (bsp)
//   ApplyFirstPushes   a round is one update of its first pushes; the others are dropped (backup,
//                      quorum)
//
// A method that returns a worker has moved clocks: the shard then looks at its parked pulls, and
// attributes their waiting time to that worker.
#include <memory>
#include <optional>
#include <vector>

#include "actors/channel.hpp"
#include "actors/outbox.hpp"
#include "actors/shard/clock_table.hpp"
#include "actors/shard/contribution.hpp"
#include "actors/shard/push_sink.hpp"
#include "actors/shard/tied_blocks.hpp"
#include "messages/scheduler_shard.hpp"
#include "policies/consistency/consistency.hpp"

namespace leeway {

class ApplyPolicy {
 public:
  /// The shard's progress with the pushes of a worker.
  struct Progress {
    Clock clock;
    std::vector<std::uint32_t> applied;  // buckets of iteration `clock` that are or will be applied
  };

  virtual ~ApplyPolicy() = default;

  /// Takes a push that the clock table has just accepted.
  virtual std::optional<WorkerId> take(Contribution push, Outbox& out) = 0;

  /// The worker has just been fenced: drops its held pushes of an iteration that stays unfinished.
  virtual Progress fence(WorkerId worker) = 0;
  /// The worker is about to be removed.
  virtual void remove(WorkerId /*worker*/) {}
  /// The worker has been fenced or removed: applies the updates that waited for its pushes.
  virtual std::optional<WorkerId> release(WorkerId /*worker*/, Outbox&) { return std::nullopt; }

  /// Clocks have moved: applies the rounds that are complete now.
  virtual void apply_complete(Outbox&) {}
  /// Asks the scheduler to close the open round if it has enough pushes.
  virtual void propose(Outbox&) {}
  /// A timer of the policy has fired.
  virtual void on_timer(Outbox&) {}
  /// The run is to stop: see msg::EndGrace.
  virtual void end_grace(Outbox&) {}
  /// The scheduler's answer. False if the round is not open at this shard.
  virtual bool close(const msg::CloseRound&) { return false; }
  /// Applies the closed round if all its pushes have arrived.
  virtual std::optional<WorkerId> apply_closed(Outbox&) { return std::nullopt; }

  /// The pushes that are not applied.
  virtual msg::RoundState save() const { return {}; }
  virtual void restore(const msg::RoundState&) {}

  /// The run is over: applies pushes of rounds that no worker will complete.
  virtual void finish(Outbox&) {}
};

/// `timer`: the token of the policy's timers.
std::unique_ptr<ApplyPolicy> make_apply_policy(const Consistency& consistency, ShardId shard,
                                               TimerToken timer, ClockTable& clocks,
                                               TiedBlocks& tied, PushSink& sink,
                                               Channel& scheduler);

}  // namespace leeway
