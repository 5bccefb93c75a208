#pragma once
// RoundCloser: under backup and quorum, closes a round with the first pushes at shard 0
// (docs/staleness.md, "Backup workers").
#include "actors/scheduler/leases.hpp"
#include "actors/scheduler/mailer.hpp"
#include "actors/scheduler/run_control.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class RoundCloser {
 public:
  RoundCloser(Roster& roster, const Mailer& mailer, Leases& leases, RunControl& run)
      : roster_(roster), mailer_(mailer), leases_(leases), run_(run) {}

  /// Handles a proposal of shard 0 to close a round. If it is accepted, all shards and the workers
  /// of dropped pushes get a message, and the samples of these workers go back. True if accepted.
  bool close(const msg::RoundClosed& proposed, Outbox& out);
  /// The link to a worker works again: repeats a PushDropped that may be lost.
  void send_again(WorkerId worker, Outbox& out) const;

 private:
  using State = Member::State;

  Roster& roster_;
  const Mailer& mailer_;
  Leases& leases_;
  RunControl& run_;
};

}  // namespace leeway
