#pragma once
// Admission: takes members into the run, from their Join to their Start (docs/staleness.md,
// "Membership").
#include <memory>
#include <set>

#include "actors/scheduler/leases.hpp"
#include "actors/scheduler/mailer.hpp"
#include "actors/scheduler/run_control.hpp"

namespace leeway {

class Admission {
 public:
  Admission(const Job& job, Roster& roster, const Mailer& mailer, Leases& leases, RunControl& run)
      : stages_(job.stages),
        by_rounds_(job.consistency->by_rounds()),
        roster_(roster),
        mailer_(mailer),
        leases_(leases),
        run_(run) {}

  /// Handles a Join. False if the worker still takes part in a session: that one is over, and must
  /// be evicted first.
  bool join(WorkerId worker, JoinNonce nonce, Outbox& out);
  /// Begins the training once no member is awaited.
  void begin_if_gathered(Outbox& out);
  /// Proposes the member's first iteration to the shards.
  void admit(WorkerId lead, Outbox& out);
  /// Opens the next barrier if all members that take part wait, and admits those that pass.
  void open_barriers(Outbox& out);
  /// A shard's answer. True when all have answered for the member: start_ready() may start it.
  bool admitted(const msg::Admitted& answer, Outbox& out);
  /// Starts the members for which all shards have answered.
  void start_ready(Outbox& out);
  /// The link to a worker works again: repeats a Start or a refusal that may be lost.
  void send_again(WorkerId worker, Outbox& out) const;

 private:
  using State = Member::State;

  /// Registers a worker whose member does not take part.
  void take_in(WorkerId worker, JoinNonce nonce, Outbox& out);
  /// Begins a session, or repeats its Start.
  void start(WorkerId worker, Outbox& out) const;

  std::shared_ptr<const Stages> stages_;
  bool by_rounds_;
  Roster& roster_;
  const Mailer& mailer_;
  Leases& leases_;
  RunControl& run_;
  std::uint64_t open_barriers_ = 0;  // all barriers up to this number are open
  std::set<WorkerId> ready_;  // every ready member, and perhaps some that are not ready any more
};

}  // namespace leeway
