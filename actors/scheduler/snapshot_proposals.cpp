#include "actors/scheduler/snapshot_proposals.hpp"

#include <cmath>

#include "checkpoint/store.hpp"

namespace leeway {

SnapshotProposals::SnapshotProposals(const Job& job, const Roster& roster, const Leases& leases,
                                     const Mailer& mailer, Checkpoints& checkpoints)
    : roster_(roster),
      leases_(leases),
      mailer_(mailer),
      checkpoints_(checkpoints),
      immediate_(job.consistency->bound() == kUnbounded),
      shards_(job.layout->shards()),
      interval_(job.plan.evaluate_every * static_cast<double>(job.data.train->size())) {
  if (job.resumed) data_.evaluated_at = job.resumed->manifest.scheduler.evaluated_at;
  data_.next_due = (std::floor(data_.evaluated_at / interval_) + 1) * interval_;
}

bool SnapshotProposals::evaluation_begins() {
  const auto leased = static_cast<double>(leases_.book().samples_leased());
  if (interval_ <= 0 || leased < data_.next_due) return false;
  // A checkpoint delays an evaluation; an earlier evaluation replaces it.
  if (data_.proposal && !data_.evaluating && !immediate_) return false;
  const double due =
      std::exchange(data_.next_due, (std::floor(leased / interval_) + 1) * interval_);
  if (data_.evaluating) return false;
  data_.evaluating_at = due;
  return true;
}

void SnapshotProposals::start_if_due(Outbox& out) {
  checkpoints_.count_leased();
  // The weights at the end are evaluated anyway.
  const bool more = leases_.book().anything_to_lease();
  const bool checkpoint = !data_.proposal && more && checkpoints_.prepare();
  // An evaluation that is due waits for the checkpoint, and shares its snapshot.
  if (!checkpoint && !immediate_ && !data_.proposal && more && checkpoints_.is_preparing()) return;
  bool evaluate = evaluation_begins() && more;
  if (evaluate && immediate_) {
    propose(true, false, out);
    evaluate = false;
  }
  if (data_.proposal) return;
  if (evaluate || checkpoint) propose(evaluate, checkpoint, out);
}

void SnapshotProposals::propose(bool evaluate, bool checkpoint, Outbox& out) {
  msg::Snapshot order{
      .snapshot = data_.next_id++, .immediate = immediate_ && evaluate, .evaluate = evaluate};
  order.iterations = ends();
  if (checkpoint) order.checkpoint = checkpoints_.propose(order.iterations);
  if (evaluate) data_.evaluating = order.snapshot;
  if (!order.immediate)
    data_.proposal = Proposal{order.snapshot, evaluate, checkpoint, shards_, false, shards_};
  mailer_.to_shards(order, out);
}

void SnapshotProposals::voted(const msg::SnapshotVote& vote, Outbox& out) {
  auto& proposal = data_.proposal;
  if (!proposal || vote.snapshot != proposal->id || proposal->votes_missing == 0) return;
  proposal->refused |= !vote.accepted;
  if (--proposal->votes_missing == 0 && proposal->refused)
    propose(proposal->evaluate, proposal->checkpoint, out);
}

bool SnapshotProposals::taken(const msg::SnapshotTaken& sent) {
  if (!data_.proposal || sent.snapshot != data_.proposal->id || --data_.proposal->missing > 0)
    return false;
  return std::exchange(data_.proposal, std::nullopt)->checkpoint;
}

void SnapshotProposals::abandon() {
  data_.proposal.reset();
  checkpoints_.abandon_untaken();
}

void SnapshotProposals::store_final(const PushCounts& counts, Outbox& out) {
  msg::Snapshot order{
      .snapshot = data_.next_id++, .iterations = ends(), .immediate = true, .evaluate = false};
  order.checkpoint = checkpoints_.propose(order.iterations);
  mailer_.to_shards(order, out);
  checkpoints_.taken(counts, data_.evaluated_at, out);
}

std::vector<Iteration> SnapshotProposals::ends() const {
  std::vector<Iteration> iterations;
  for (const auto& [lead, member] : roster_.members())
    iterations.push_back(leases_.first_unleased(lead));
  return iterations;
}

void SnapshotProposals::evaluated(std::uint64_t snapshot) {
  if (data_.evaluating != snapshot) return;
  data_.evaluating.reset();
  // All shards have taken it, whether or not they have said so yet.
  if (data_.proposal && data_.proposal->id == snapshot && !data_.proposal->checkpoint)
    data_.proposal.reset();
  data_.evaluated_at = data_.evaluating_at;
}

}  // namespace leeway
