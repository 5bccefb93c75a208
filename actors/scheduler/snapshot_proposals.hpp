#pragma once
// SnapshotProposals: times the evaluations, and finds for each evaluation and each checkpoint the
// iterations at which all shards can take their snapshots.
//
// A snapshot holds the pushes of each pipeline below one iteration, on all shards. The scheduler
// proposes the first iterations that it has not leased, and every shard votes. If a shard has a
// push beyond the proposal, because a lease overtook it, the scheduler proposes again. At most one
// proposal and one evaluation are in flight.
#include <cstdint>
#include <optional>

#include "actors/scheduler/checkpoints.hpp"
#include "actors/scheduler/leases.hpp"
#include "actors/scheduler/mailer.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class SnapshotProposals {
 public:
  SnapshotProposals(const Job& job, const Roster& roster, const Leases& leases,
                    const Mailer& mailer, Checkpoints& checkpoints);

  /// Proposes a snapshot if an evaluation or a checkpoint is due and no proposal is in flight. Call
  /// after each lease: evaluations are due after a number of leased samples.
  void start_if_due(Outbox& out);
  void voted(const msg::SnapshotVote& vote, Outbox& out);
  /// A shard has taken its part. True when all have, of a checkpoint.
  bool taken(const msg::SnapshotTaken& sent);
  /// Gives up the proposal in flight: the run stops.
  void abandon();
  /// Stores the state as it is. Requires that all workers have stopped, and that no sample is
  /// partly applied.
  void store_final(const PushCounts& counts, Outbox& out);
  /// Records that the monitor has evaluated this snapshot.
  void evaluated(std::uint64_t snapshot);
  /// Samples leased when the last complete evaluation was due.
  double evaluated_at() const { return data_.evaluated_at; }

 private:
  struct Proposal {
    std::uint64_t id = 0;
    bool evaluate = false;
    bool checkpoint = false;
    std::size_t votes_missing = 0;
    bool refused = false;
    std::size_t missing = 0;  // shards that have not taken it
  };
  /// The mutable state.
  struct Data {
    std::optional<Proposal> proposal;         // until all shards have taken it
    std::optional<std::uint64_t> evaluating;  // snapshot
    std::uint64_t next_id = 1;
    double next_due = 0;       // evaluation, in samples leased
    double evaluating_at = 0;  // next_due of the evaluation in flight
    double evaluated_at = 0;
  };

  /// True if an evaluation is due and can begin.
  bool evaluation_begins();
  void propose(bool evaluate, bool checkpoint, Outbox& out);
  /// The first iteration of each pipeline that is not leased.
  std::vector<Iteration> ends() const;

  const Roster& roster_;
  const Leases& leases_;
  const Mailer& mailer_;
  Checkpoints& checkpoints_;
  bool immediate_;  // evaluations
  std::size_t shards_;
  double interval_;  // in samples leased; 0 or less: no evaluations
  Data data_;
};

}  // namespace leeway
