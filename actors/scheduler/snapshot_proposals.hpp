#pragma once
// SnapshotProposals: times the evaluations, and finds for each the iteration at which all shards
// can take their snapshots.
//
// A snapshot is taken at one iteration by all shards, before any of them applies a push of it. The
// scheduler proposes an iteration, every shard votes with the largest that it has begun, and if one
// has come too far the scheduler proposes a later one. One evaluation is in flight at most.
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

  /// To be called after each lease: evaluations are due by the number of samples leased.
  void start_if_due(const LeaseBook& book, Outbox& out);
  void voted(const msg::SnapshotVote& vote, const LeaseBook& book, Outbox& out);
  /// The monitor has evaluated this snapshot.
  void evaluated(std::uint64_t snapshot);

 private:
  struct InFlight {
    std::uint64_t id = 0;
    Iteration iteration;
    std::size_t votes_missing = 0;
    Iteration largest;
    bool refused = false;
  };
  /// All that changes.
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
