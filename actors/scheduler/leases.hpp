#pragma once
// Leases: answers requests for samples from the lease book, and keeps the requests that have to
// wait (docs/staleness.md, "Data").
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/scheduler/lease_book.hpp"
#include "actors/scheduler/mailer.hpp"
#include "checkpoint/values.hpp"
#include "policies/balance/balance.hpp"

namespace leeway {

class Leases {
 public:
  Leases(const Job& job, Roster& roster, const Mailer& mailer);

  const LeaseBook& book() const { return book_; }
  /// The largest iteration that the member can have reached.
  Iteration farthest(const Member& member) const { return std::max(book_.horizon(), member.start); }

  /// The first iteration of the member that no lease reaches; by rounds, that of all members.
  Iteration first_unleased(WorkerId lead) const;

  /// Whether there are samples for idle members.
  bool any_for_idle() const { return book_.anything_for_others(roster_.taking_part()); }
  /// Records the times and counts of the member since its last request.
  void measured(WorkerId lead, const msg::WantLease& want);
  /// Leases samples, reports that there are none, or keeps the request: under backup and quorum,
  /// samples may still come back from rounds that are open. True if samples were leased.
  bool answer(WorkerId lead, const msg::WantLease& want, Outbox& out);
  /// Returns the waiting requests and stops keeping them.
  std::map<WorkerId, msg::WantLease> take_waiting() { return std::exchange(waiting_, {}); }
  bool has_waiting() const { return !waiting_.empty(); }
  /// Discards the member's waiting request.
  void withdraw(WorkerId lead) { waiting_.erase(lead); }

  /// Iterations of the member below `clock` are trained.
  void confirm(WorkerId lead, Clock clock, Outbox& out);
  /// Ends all leases of the member. Returns the number of untrained samples, which go back.
  std::uint64_t take_back(WorkerId lead, const PartialIterations& partial, Outbox& out);
  /// The member starts at `iteration`: its shares of earlier rounds go back.
  void skip_to(WorkerId lead, Iteration iteration) { book_.skip_to(lead, iteration); }
  void follow_snapshot(std::map<WorkerId, Iteration> ends) {
    book_.follow_snapshot(std::move(ends));
  }
  std::optional<LeaseBook::FollowedSnapshot> end_snapshot() { return book_.end_snapshot(); }
  /// With a codec for pushes: from now on, leases flush, that is, their last push carries the
  /// residuals in full. By rounds, only leases of rounds that are not open yet do, so that the
  /// order of requests does not matter.
  void begin_flush();
  /// From now on, leases flush no more, except those of rounds that are open.
  void end_flush();
  /// Whether the last lease of the member flushes.
  bool is_flushed(WorkerId lead) const;
  /// The measured paces, for a checkpoint.
  std::vector<checkpoint::Pace> paces() const;
  /// The member is admitted at `iteration`, again or for the first time.
  void admitted(WorkerId lead, Iteration iteration) { book_.admitted(lead, iteration); }
  /// Discards the member's measured pace.
  void forget_pace(WorkerId lead) { balance_->forget(lead); }

  /// Whether these pushes can close the round: see LeaseBook::suffice().
  bool suffices(Iteration round, const std::vector<WorkerId>& contributors) const;
  /// See LeaseBook::scale().
  double scale(Iteration round, const std::vector<WorkerId>& contributors) const {
    return book_.scale(round, contributors);
  }
  /// Closes a round. The shares of all other members go back; returns their number.
  std::uint64_t close(Iteration round, const std::vector<WorkerId>& contributors, Outbox& out);

 private:
  Roster& roster_;
  const Mailer& mailer_;
  bool by_rounds_;
  std::shared_ptr<Balance> balance_;
  LeaseBook book_;
  std::shared_ptr<const Stages> stages_;
  std::map<WorkerId, msg::WantLease> waiting_;
  /// Iterations whose leases flush.
  std::optional<std::pair<Iteration, Iteration>> flush_;
  /// By member: first iteration of the last lease, and whether it flushes.
  std::map<WorkerId, std::pair<std::optional<Iteration>, bool>> last_;
  std::map<WorkerId, Iteration> encoded_below_;  // by member: end of the last lease without a flush
};

}  // namespace leeway
