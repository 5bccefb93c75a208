#pragma once
// Scheduler: decides which workers take part in the run and which samples each trains, moves an
// adaptive staleness bound, times the evaluations, and ends the run.
//
// Its components make the decisions; each has its own file. The scheduler decodes messages, hands
// each to a component, and connects the components if a decision of one requires another's. It uses
// neither the time nor random numbers, so its state depends only on its messages and their order.
#include <memory>
#include <set>
#include <string>

#include "actors/channel.hpp"
#include "actors/job.hpp"
#include "actors/protocol_role.hpp"
#include "actors/scheduler/admission.hpp"
#include "actors/scheduler/bound_control.hpp"
#include "actors/scheduler/checkpoints.hpp"
#include "actors/scheduler/departures.hpp"
#include "actors/scheduler/evictions.hpp"
#include "actors/scheduler/leases.hpp"
#include "actors/scheduler/mailer.hpp"
#include "actors/scheduler/replicas.hpp"
#include "actors/scheduler/roster.hpp"
#include "actors/scheduler/round_closer.hpp"
#include "actors/scheduler/run_control.hpp"
#include "actors/scheduler/snapshot_proposals.hpp"

namespace leeway {

class Scheduler final : public ProtocolRole {
 public:
  /// `later`: workers that may join after the run has begun, in addition to those that join by a
  /// fault of the plan.
  explicit Scheduler(std::shared_ptr<const Job> job, const std::set<WorkerId>& later = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_part(Work& work, int part, Outbox& out) override;
  void on_down(Address actor, const EndReason& reason, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

  /// Phase and members, for messages about a run that hangs.
  std::string describe() const { return run_.describe(); }

 private:
  using State = Member::State;
  using Phase = RunControl::Phase;

  void on_envelope(Address from, Envelope& envelope, Outbox& out) override;
  void on_worker(WorkerId worker, Envelope& envelope, Outbox& out);
  /// Handles a message of a worker whose member takes part.
  void on_member(WorkerId worker, Body& body, Outbox& out);
  void on_shard(Address from, Envelope& envelope, Outbox& out);

  /// The worker's process has ended. Counts each process once.
  void count_lost_residual(WorkerId worker);
  void join(WorkerId worker, JoinNonce nonce, Outbox& out);
  void evict(WorkerId worker, const std::string& reason, Outbox& out, bool rejoined = false);
  void fenced(ShardId shard, const msg::Fenced& answer, Outbox& out);
  void leave(WorkerId worker, Outbox& out);
  void stopped(WorkerId worker, Session session, const msg::Stopped& sent, Outbox& out);
  void lease(WorkerId lead, const msg::WantLease& want, Outbox& out);
  /// A replica of a shard has ended.
  void replica_ended(Address actor, const EndReason& reason, Outbox& out);
  void diverged(WorkerId worker, const msg::Diverged& sent, Outbox& out);
  void evaluated(const msg::Evaluated& sent, Outbox& out);
  void interrupt(Outbox& out);
  /// Proposes a snapshot if one is due.
  void snapshot_if_due(Outbox& out);
  /// Starts the members that are ready.
  void start_ready(Outbox& out);
  /// Leases returned samples to waiting requests, and admits idle members for them.
  void samples_came_back(Outbox& out);
  void idle(WorkerId worker, const msg::Idle& sent, Outbox& out);

  bool is_shard(Address actor) const {
    return actor.kind == RoleKind::shard && actor.index < shards_.size();
  }
  /// A shard or its standby.
  bool is_replica(Address actor) const {
    return is_shard(actor) || (actor.kind == RoleKind::standby && actor.index < shards_.size());
  }
  bool knows(Address worker) const {
    return worker.kind == RoleKind::worker && roster_.has(WorkerId(worker.index));
  }

  std::shared_ptr<const Job> job_;
  Roster roster_;
  std::vector<Channel> shards_;
  Mailer mailer_;
  Leases leases_;
  BoundControl bound_;
  Checkpoints checkpoints_;
  SnapshotProposals snapshots_;
  RunControl run_;
  Admission admission_;
  Evictions evictions_;
  Departures departures_;
  RoundCloser rounds_;
  Replicas replicas_;
};

}  // namespace leeway
