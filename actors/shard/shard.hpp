#pragma once
// Shard: holds some blocks of the parameters, applies pushes to them once each, and answers pulls
// when the staleness rule allows it.
//
// A pull goes through three stations: parked until the rule holds; then in the queues of the
// groups, behind the pushes that it must see; then answered. Everything the shard knows of a worker
// is in its ClockTable; death is decided by the scheduler alone.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "actors/job.hpp"
#include "actors/protocol_role.hpp"
#include "actors/shard/bound_table.hpp"
#include "actors/shard/clock_table.hpp"
#include "actors/shard/parameter_bucket.hpp"

namespace leeway {

class Shard final : public ProtocolRole {
 public:
  Shard(std::shared_ptr<const Job> job, ShardId id);

  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;

  const ClockTable& clocks() const { return clocks_; }

 private:
  struct ParkedPull {
    WorkerId worker;
    msg::Pull pull;
    Instant since;
  };
  /// A pull that the rule let through, while its blocks are captured.
  struct Answer {
    WorkerId worker;
    Incarnation incarnation;
    msg::Weights weights;
    std::size_t missing = 0;
  };
  struct SnapshotInProgress {
    std::uint64_t id = 0;
    Iteration iteration;
    std::vector<bool> forked;  // per group
  };

  /// Backup: an iteration that a worker has pushed whole, in a round that is not applied yet.
  struct WholePush {
    WorkerId worker;
    bool empty = false;
  };
  /// Backup: a round that was closed, while pushes of contributors are on their way.
  struct Closing {
    Iteration round;
    std::vector<WorkerId> contributors;  // ascending
    std::set<WorkerId> missing;          // contributors whose pushes are not whole here
  };

  void on_envelope(Address from, Envelope& envelope, Outbox& out) override;

  // One handler a message.
  void handle(Address from, const Envelope&, const msg::Pull& pull, Outbox& out);
  void handle(Address from, const Envelope&, msg::Push& push, Outbox& out);
  void handle(const msg::Admit& admit, Outbox& out);
  void handle(const msg::Raise& raise, Outbox& out);
  void handle(const msg::Fence& fence, Outbox& out);
  void handle(const msg::Remove& remove, Outbox& out);
  void handle(const msg::Bound& bound, Outbox& out);
  void handle(const msg::CloseRound& close, Outbox& out);
  void handle(const msg::Snapshot& snapshot, Outbox& out);
  void handle(const msg::Finish&, Outbox& out);

  /// What a participant pulls and pushes here: no parts, where it has no blocks on this shard.
  const StageShare::AtShard& share_of(WorkerId worker) const {
    return job_->stages->share_of(worker).at[id_.value()];
  }
  /// Empty when the push fits the model and the rule, else what is wrong with it.
  std::string misfit(WorkerId worker, const msg::Push& push) const;
  void take(Contribution contribution, Outbox& out);
  void enqueue_update(std::size_t group, std::vector<Contribution> contributions, Outbox& out);
  /// Under bsp: applies the rounds that every live participant has pushed.
  void apply_complete_rounds(Outbox& out);
  /// Nothing under backup, whose rounds are closed one by one.
  void apply_rounds_below(Clock clock, Outbox& out);
  void apply_round(std::vector<Contribution> contributions, Outbox& out);

  // Blocks that several stages of a pipeline own.
  bool is_shared(std::uint32_t group) const;
  std::vector<std::vector<std::uint32_t>> find_siblings() const;
  /// The least clock of the stages that own a block here together with the worker, its own among
  /// them: how many iterations of its pipeline are whole in what it pulls.
  Clock common_clock(WorkerId worker) const;
  void take_tied(Contribution contribution, Outbox& out);
  /// After a change of the membership: applies what waits in vain.
  void release_tied(WorkerId lead, Outbox& out);
  bool waits(std::uint32_t group, const std::vector<Contribution>& halves) const;

  // Rounds that are closed early.
  void propose_round(Outbox& out);
  void apply_closed_round(Outbox& out);
  void drop(const Contribution& contribution, Outbox& out);
  Clock settle(const ClockTable::Participant& participant, WorkerId worker);
  /// Forgets the parts of an iteration of a fenced worker that are on hold.
  void drop_unfinished(WorkerId worker, Iteration iteration);

  /// After anything that may have moved a clock: rounds, parked pulls, the cut. `mover` is the
  /// worker that moved.
  void clocks_changed(WorkerId mover, Outbox& out);
  bool permitted(const ParkedPull& parked) const;
  /// Whether the staleness rule lets the worker, which has pushed `own_clock` iterations, into one.
  bool permitted(WorkerId worker, Iteration iteration, Clock own_clock) const;
  void answer(const ParkedPull& parked, Outbox& out);
  /// `mover`: whose clock let them through; nobody's when the bound did.
  void release_parked(std::optional<WorkerId> mover, Outbox& out);
  std::uint32_t parked_of(WorkerId worker) const {
    return worker.value() < parked_of_.size() ? parked_of_[worker.value()] : 0;
  }
  /// Of the worker, and of those who share a block with it.
  std::uint32_t parked_with(WorkerId worker) const;
  void park(const ParkedPull& parked);
  /// Takes out of parked_ those for which `leaves(parked)`.
  template <class Leaves>
  void unpark_if(Leaves leaves);
  void collect_snapshot(Outbox& out);
  void send_state(msg::SnapshotState state, bool of_fork, Outbox& out);

  void run_bucket(std::size_t group, Outbox& out);
  void forget_unapplied(const Contribution& contribution);
  void acknowledge(const Contribution& contribution, bool repeat, Outbox& out);
  void refuse(Address to, Incarnation incarnation, msg::Refused::Reason reason, Iteration iteration,
              std::string text, Outbox& out);
  bool stale(View view, Outbox& out);
  void report(Outbox& out);
  void send_when_drained(Outbox& out);
  std::size_t group_of(const Work& work) const;
  void note_wait(const ParkedPull& parked, WorkerId mover, Instant now);

  std::shared_ptr<const Job> job_;
  ShardId id_;
  ClockTable clocks_;
  BoundTable bounds_;
  View view_;
  std::vector<std::unique_ptr<ParameterBucket>> groups_;  // by part index
  std::map<std::size_t, std::shared_ptr<Work>> running_;  // by group
  std::vector<ParkedPull> parked_;                        // in order of arrival
  std::vector<std::uint32_t> parked_of_;          // how many of them are of a worker, by its index
  Clock swept_at_;                                // min_clock when parked_ was last looked through
  std::vector<std::shared_ptr<Answer>> answers_;  // complete, not yet sent
  /// Pushes taken and not yet acknowledged, so that a repeat of one is not acknowledged before it
  /// is applied.
  std::map<std::pair<WorkerId, Incarnation>, std::vector<std::pair<Iteration, std::uint32_t>>>
      unapplied_;
  std::map<Iteration, std::vector<Contribution>> rounds_;  // bsp: pushes that wait for their round
  /// By stage: the other stages that own a block here with it.
  std::vector<std::vector<std::uint32_t>> siblings_;
  /// Parts of such blocks that wait for those of the pipeline's other owners, by its lead. Of one
  /// iteration at a time: a push for the next is refused as long as one waits.
  std::map<std::tuple<WorkerId, Iteration, std::uint32_t>, std::vector<Contribution>> halves_;
  std::vector<WholePush> whole_;  // backup: of the open round, as they came
  std::optional<Closing> closing_;
  /// Lead: what it last asked the scheduler to close.
  struct Proposed {
    Iteration round{-1};
    View view;
    std::size_t contributors = 0;
  } proposed_;
  std::optional<SnapshotInProgress> snapshot_;
  bool finishing_ = false;
  bool finished_ = false;
  msg::ShardReport report_;
  std::map<std::pair<WorkerId, WorkerId>, msg::ShardReport::Wait> waits_;
  std::uint64_t reported_events_ = 0;
};

template <class Leaves>
void Shard::unpark_if(Leaves leaves) {
  std::erase_if(parked_, [&](const ParkedPull& parked) {
    if (!leaves(parked)) return false;
    --parked_of_[parked.worker.value()];
    return true;
  });
}

}  // namespace leeway
