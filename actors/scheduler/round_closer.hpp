#pragma once
// RoundCloser: under backup, closes a round with the pushes that shard 0 has seen first
// (docs/staleness.md, "Rounds that do not wait").
#include "actors/scheduler/leases.hpp"
#include "actors/scheduler/mailer.hpp"
#include "actors/scheduler/run_control.hpp"
#include "messages/scheduler_shard.hpp"

namespace leeway {

class RoundCloser {
 public:
  RoundCloser(Roster& roster, const Mailer& mailer, Leases& leases, RunControl& run)
      : roster_(roster), mailer_(mailer), leases_(leases), run_(run) {}

  /// Shard 0 proposes to close a round. If the round is closed, all shards hear of it, and so do
  /// the workers whose pushes are dropped. Their samples go back. True if it is closed.
  bool close(const msg::RoundClosed& proposed, Outbox& out);
  /// The link to a worker works again: it may not have heard that its push is dropped.
  void send_again(WorkerId worker, Outbox& out) const;

 private:
  using State = Member::State;

  Roster& roster_;
  const Mailer& mailer_;
  Leases& leases_;
  RunControl& run_;
};

}  // namespace leeway
