#pragma once
// RunControl: the phases of a run, the reports about it, and its end.
//
// gathering (until the plan's pipelines have joined) -> training -> stopping (Stop was sent)
// -> ended (Finish was sent)
//
// A run that stops writes a last checkpoint of the state in which all workers have stopped. An
// interrupted run takes its checkpoint before it stops: under bsp, a round that the order to stop
// interrupts would be applied without some of its pushes.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/scheduler/bound_control.hpp"
#include "actors/scheduler/checkpoints.hpp"
#include "actors/scheduler/leases.hpp"
#include "actors/scheduler/snapshot_proposals.hpp"
#include "messages/monitor.hpp"

namespace leeway {

class RunControl {
 public:
  enum class Phase : std::uint8_t { gathering, training, stopping, ended };

  RunControl(const Job& job, const Roster& roster, const Mailer& mailer, const LeaseBook& book,
             const BoundControl& bound, Checkpoints& checkpoints, SnapshotProposals& snapshots);

  Phase phase() const { return data_.phase; }
  bool is_training() const { return phase() == Phase::training; }
  bool is_over() const { return phase() == Phase::stopping || phase() == Phase::ended; }

  void begin_training() { data_.phase = Phase::training; }
  /// Asks all workers to stop. If the run stops already, only a failure has an effect: it replaces
  /// the reason.
  void stop(msg::RunEnded::Reason reason, std::string text, Outbox& out);
  /// As stop(), for weights that are not worth a checkpoint.
  void stop_without_checkpoint(msg::RunEnded::Reason reason, std::string text, Outbox& out);
  /// Ctrl-C. True if the run continues until checkpointed(); otherwise it stops at once.
  bool interrupt(Outbox& out);
  /// The snapshot of a checkpoint has been taken: an interrupted run stops.
  void checkpointed(Outbox& out);
  /// No checkpoint could be taken in time: an interrupted run stops.
  void give_up_checkpoint(Outbox& out);
  /// Stops the run if all samples are trained. Ends it if it stops, all members have stopped and
  /// the last checkpoint is written.
  void finish_if_done(Outbox& out);
  /// Fails the run if no member takes part and none may return. `last`: the last member to end.
  void fail_if_alone(WorkerId last, Outbox& out);
  /// Ends the run without waiting for the workers, which wait for a lost shard.
  void fail_at_once(std::string text, Outbox& out);

  PushCounts counts() const { return {data_.partial_pushes, data_.dropped_pushes}; }
  void count_partial_pushes(std::uint64_t count) { data_.partial_pushes += count; }
  void count_dropped_pushes(std::uint64_t count) { data_.dropped_pushes += count; }
  /// A worker's process has ended, and with it what its encodings had lost.
  void count_lost_residual();
  void report(Outbox& out) const;
  std::string describe() const;

 private:
  using State = Member::State;

  /// The mutable state.
  struct Data {
    Phase phase = Phase::gathering;
    msg::RunEnded end;
    std::uint64_t partial_pushes = 0;
    std::uint64_t dropped_pushes = 0;
    bool interrupted = false;     // stops after the next checkpoint
    bool last_checkpoint = true;  // the state at the end is to be stored
  };

  void finish(Outbox& out);
  /// Workers that have pushed the open round cannot stop before it is closed: closes it, and later
  /// ones, without a grace window.
  void end_grace(Outbox& out) const;
  /// True for a member that is gone and may take part again: each of its stages lives, or the plan
  /// restarts or adds it.
  bool may_return(WorkerId lead) const;

  const Roster& roster_;
  const Mailer& mailer_;
  const LeaseBook& book_;
  const BoundControl& bound_;
  Checkpoints& checkpoints_;
  SnapshotProposals& snapshots_;
  std::shared_ptr<const Stages> stages_;
  std::vector<plan::Fault> faults_;
  bool has_grace_;  // rounds may wait for more pushes than they need
  bool workers_return_;
  std::uint64_t most_iterations_;
  Data data_;
};

}  // namespace leeway
