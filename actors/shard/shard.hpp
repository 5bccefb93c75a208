#pragma once
// Shard: holds some blocks of the parameters, applies each push to them once, and answers pulls
// when the staleness rule allows it.
//
//   pull  -> PullGate (parked until the rule holds) -> PullAnswers (through the queues) -> answer
//   push  -> ClockTable -> ApplyPolicy -> Updates (through the queues) -> Acknowledgements
//   order -> the scheduler's orders about membership, bound, rounds and snapshots
//
// The shard validates messages and connects these components. Its ClockTable has all of its
// knowledge about a worker; only the scheduler decides that a worker is dead.
#include <memory>
#include <optional>
#include <string>

#include "actors/channel.hpp"
#include "actors/job.hpp"
#include "actors/replica/replicated_role.hpp"
#include "actors/shard/acknowledgements.hpp"
#include "actors/shard/apply_policy.hpp"
#include "actors/shard/bucket_queues.hpp"
#include "actors/shard/clock_table.hpp"
#include "actors/shard/loss_scale.hpp"
#include "actors/shard/open_pulls.hpp"
#include "actors/shard/pull_answers.hpp"
#include "actors/shard/pull_gate.hpp"
#include "actors/shard/round_norms.hpp"
#include "actors/shard/snapshots.hpp"
#include "actors/shard/tied_blocks.hpp"
#include "actors/shard/updates.hpp"

namespace leeway {

class StoreWork;

class Shard final : public ReplicatedRole {
 public:
  Shard(std::shared_ptr<const Job> job, ShardId id, FirstState first = FirstState::of_run);

  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;

  bool is_quiet() const override;
  Message save() const override;
  Status restore(const Message& state) override;

  const ClockTable& clocks() const { return clocks_; }

 private:
  void on_envelope(Address from, Envelope& envelope, Outbox& out) override;
  void on_order(Body& body, Outbox& out);

  // One handler for each message.
  void handle(Address from, const Envelope& envelope, const msg::Pull& pull, Outbox& out);
  void handle(Address from, const Envelope& envelope, msg::Push& push, Outbox& out);
  void handle(const msg::Admit& admit, Outbox& out);
  void handle(const msg::Raise& raise, Outbox& out);
  void handle(const msg::Fence& fence, Outbox& out);
  void handle(const msg::Remove& remove, Outbox& out);
  void handle(const msg::Bound& bound, Outbox& out);
  void handle(const msg::CloseRound& order, Outbox& out);
  void handle(const msg::EndGrace& order, Outbox& out);
  void handle(const msg::Finish& finish, Outbox& out);
  void handle(Address from, const msg::RoundNorm& part, Outbox& out);

  /// A worker's buckets at this shard; empty if it has no blocks here.
  const StageShare::AtShard& share_of(WorkerId worker) const {
    return job_->stages->share_of(worker).at[id_.value()];
  }
  /// Whether the sender is a worker that may push; refuses the message if not.
  bool admits(Address from, Session session, Iteration iteration, std::string_view verb,
              Outbox& out);
  Status validate(WorkerId worker, const msg::Push& push) const;
  void answer(const ParkedPull& pull, Outbox& out);
  void release_pulls(std::optional<WorkerId> mover, Outbox& out);
  /// A whole iteration of this weight has been pushed: notifies the workers of outdated pulls.
  void count_progress(double weight, Outbox& out);
  void send_outdated(const OpenPulls::Pull& pull, Outbox& out);
  /// Call when `mover` may have moved clocks.
  void clocks_changed(WorkerId mover, Outbox& out);
  /// Runs the updates whose scale is known.
  void run_scaled(Outbox& out);
  /// No push follows: applies whole pushes whose rounds are not complete.
  void apply_rest(Outbox& out);
  void finish_if_drained(Outbox& out);

  bool is_stale(View view, Outbox& out);
  void refuse(Address to, Session session, msg::Refused::Reason reason, Iteration iteration,
              std::string text, Outbox& out);
  void send_stored(StoreWork& stored, Outbox& out);
  void report(Outbox& out);

  std::shared_ptr<const Job> job_;
  ShardId id_;
  Channel scheduler_{kScheduler};
  Channel monitor_{kMonitor};
  ClockTable clocks_;
  BucketQueues buckets_;
  TiedBlocks tied_;
  PullGate gate_;
  PullAnswers answers_;
  Snapshots snapshots_;
  Acknowledgements acknowledgements_;
  std::unique_ptr<RoundNorms> norms_;      // null: no limit
  std::unique_ptr<LossScale> loss_scale_;  // null: losses have none
  std::unique_ptr<OpenPulls> open_pulls_;  // null: no limit, or not shard 0
  Updates updates_;
  std::unique_ptr<ApplyPolicy> apply_;
  bool finishing_ = false;
  bool finished_ = false;
  msg::ShardReport report_;
  std::uint64_t reported_events_ = 0;
};

}  // namespace leeway
