#pragma once
// SnapshotProposals: times the evaluations, and finds for each the iteration at which all shards
// can take their snapshots.
//
// All shards take a snapshot at the same iteration, before any of them applies a push of it. The
// scheduler proposes an iteration, and every shard votes with the largest iteration that it has
// begun. If a shard has passed the proposal, the scheduler proposes a later iteration. At most one
// evaluation is in flight.
#include <cstdint>
#include <memory>
#include <optional>

#include "actors/scheduler/lease_book.hpp"
#include "actors/scheduler/mailer.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class SnapshotProposals {
 public:
  SnapshotProposals(const Job& job, const Mailer& mailer);

  /// Call after each lease: evaluations are due after a number of leased samples.
  void start_if_due(const LeaseBook& book, Outbox& out);
  void voted(const msg::SnapshotVote& vote, const LeaseBook& book, Outbox& out);
  /// Records that the monitor has evaluated this snapshot.
  void evaluated(std::uint64_t snapshot);

 private:
  struct InFlight {
    std::uint64_t id = 0;
    Iteration iteration;
    std::size_t votes_missing = 0;
    Iteration largest;
    bool refused = false;
  };
  /// The mutable state.
  struct Data {
    std::optional<InFlight> in_flight;
    std::uint64_t next_id = 1;
    double next_due = 0;  // in samples leased
  };

  void propose(Iteration iteration, Outbox& out);

  const Mailer& mailer_;
  std::shared_ptr<const Consistency> consistency_;
  std::size_t shards_;
  double interval_;  // in samples leased; 0 or less: no evaluations
  Data data_;
};

}  // namespace leeway
