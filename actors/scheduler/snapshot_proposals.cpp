#include "actors/scheduler/snapshot_proposals.hpp"

#include <algorithm>
#include <cmath>

namespace leeway {

SnapshotProposals::SnapshotProposals(const Job& job, const Mailer& mailer)
    : mailer_(mailer),
      consistency_(job.consistency),
      shards_(job.layout->shards()),
      interval_(job.plan.evaluate_every * static_cast<double>(job.data.train->size())) {
  data_.next_due = interval_;
}

void SnapshotProposals::start_if_due(const LeaseBook& book, Outbox& out) {
  const auto leased = static_cast<double>(book.samples_leased());
  if (interval_ <= 0 || leased < data_.next_due) return;
  data_.next_due = (std::floor(leased / interval_) + 1) * interval_;
  // The weights at the end are evaluated anyway.
  if (data_.in_flight || !book.anything_to_lease()) return;
  data_.in_flight = InFlight{.id = data_.next_id++};
  // No lease reaches the horizon, so no worker can have passed it; the shards' votes make sure.
  propose(book.horizon(), out);
}

void SnapshotProposals::propose(Iteration iteration, Outbox& out) {
  const bool immediate = consistency_->bound() == kUnbounded;
  auto& snapshot = *data_.in_flight;
  snapshot = {.id = snapshot.id, .iteration = iteration, .votes_missing = shards_};
  mailer_.to_shards(msg::Snapshot{snapshot.id, iteration, immediate}, out);
}

void SnapshotProposals::voted(const msg::SnapshotVote& vote, const LeaseBook& book, Outbox& out) {
  if (!data_.in_flight) return;
  auto& snapshot = *data_.in_flight;
  if (vote.snapshot != snapshot.id || vote.iteration != snapshot.iteration ||
      snapshot.votes_missing == 0)
    return;
  snapshot.largest = std::max(snapshot.largest, vote.largest);
  snapshot.refused |= vote.largest >= snapshot.iteration;
  if (--snapshot.votes_missing == 0 && snapshot.refused)
    propose(std::max(snapshot.largest + 1, book.horizon()), out);
}

void SnapshotProposals::evaluated(std::uint64_t snapshot) {
  if (data_.in_flight && data_.in_flight->id == snapshot) data_.in_flight.reset();
}

}  // namespace leeway
