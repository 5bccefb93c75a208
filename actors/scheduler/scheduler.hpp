#pragma once
// Scheduler: decides who takes part, leases samples, moves the staleness bound if it is adaptive,
// times the evaluations, and ends the run.
//
// Its members are pipelines, each named by its lead, the worker that is its first stage; with one
// stage a worker is one. All stages of a pipeline take part, or none does. A member, as the
// scheduler sees it (a line each, so that formatting leaves them alone):
//
// - absent -- Join of all its stages --> joined -- all have joined --> admitting
//
// - admitting -- all shards know all its stages --> running
//
// - running -- Idle of all its stages --> idle -- data came back --> admitting
//
// - any of these -- a stage ends --> fencing -- all shards answered for all stages --> gone
//
// - gone -- Join of all its stages, under new incarnations --> joined
//
// - any but fencing, gone -- Stopped of all its stages, after Stop --> stopped
//
// - the same -- Stopped of all its stages, after the Stop of a Leave --> gone
//
// The run: gathering (until the plan's pipelines have joined) -> training -> stopping (Stop sent)
// -> ended (Finish sent).
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/protocol_role.hpp"
#include "actors/scheduler/lease_book.hpp"
#include "actors/scheduler/member.hpp"
#include "policies/balance/balance.hpp"
#include "policies/consistency/adaptive.hpp"

namespace leeway {

class Scheduler final : public ProtocolRole {
 public:
  /// `later`: workers beside those of the plan's faults that are not there when the run begins, and
  /// may come.
  explicit Scheduler(std::shared_ptr<const Job> job, const std::set<WorkerId>& later = {});

  void on_start(Outbox& out) override;
  void on_timer(TimerToken token, Outbox& out) override;
  void on_down(Address actor, const std::string& reason, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

  const LeaseBook& leases() const { return leases_; }
  /// Phase and members, for messages about a run that hangs.
  std::string describe() const;

 private:
  enum class Phase : std::uint8_t { gathering, training, stopping, ended };
  using State = Member::State;

  void on_envelope(Address from, Envelope& envelope, Outbox& out) override;
  void on_worker(WorkerId worker, Envelope& envelope, Outbox& out);
  /// Of one whose pipeline takes part.
  void on_member(WorkerId worker, Body& body, Outbox& out);
  void on_shard(Address from, Envelope& envelope, Outbox& out);

  // Membership. A `worker` is any stage, a `lead` names a member.
  void join(WorkerId worker, Incarnation incarnation, Outbox& out);
  void begin_if_gathered(Outbox& out);
  void admit(WorkerId lead, Outbox& out);
  void admitted(const msg::Admitted& answer, Outbox& out);
  void start_admitted(Outbox& out);
  void idle(WorkerId worker, const msg::Idle& idle, Outbox& out);
  void remove(WorkerId lead, Outbox& out);
  /// Asks the worker's pipeline to stop for good, while the run goes on.
  void leave(WorkerId worker, Outbox& out);
  void say_left(WorkerId lead, Outbox& out);
  void stopped(WorkerId worker, const msg::Stopped& said, Outbox& out);
  /// Begins a new view of the membership.
  View next_view() { return view_ = View(view_.value() + 1); }

  // Evictions.
  /// The worker has ended, or an incarnation of it has: so has its pipeline.
  void evict(WorkerId worker, const std::string& reason, Outbox& out);
  void fenced(ShardId shard, const msg::Fenced& answer, Outbox& out);
  /// What stages said when they stopped, as shards would. It counts nothing while they agree.
  PartialIterations stopped_apart(const Member& member) const;
  /// The member takes part no longer: what it was leased and has not trained goes back, and others
  /// complete what is partial.
  void part_with(WorkerId lead, const PartialIterations& partial, Outbox& out);
  void fail_if_alone(WorkerId last_to_end, Outbox& out);
  /// True for a member that is gone and may take part again: its stages are there, or the plan
  /// brings them.
  bool may_return(WorkerId lead, const Member& member) const;
  /// Tells a worker that its incarnation no longer takes part, and may come back under the next.
  void refuse_evicted(WorkerId worker, Outbox& out);

  // Data.
  void lease(WorkerId lead, const msg::WantLease& want, Outbox& out);
  /// Takes in how long the member has waited and computed, by its lead.
  void measured(WorkerId lead, const msg::WantLease& want, Outbox& out);
  /// Moves the staleness bound, once all have said how long they waited since it was last decided.
  void adapt(Outbox& out);
  void confirm(WorkerId lead, Clock clock, Outbox& out);
  /// Where the member may stand at most.
  Iteration farthest(const Member& member) const {
    return std::max(leases_.horizon(), member.start);
  }
  /// There may be something to lease again: for those who were not answered, and for the idle.
  void data_came_back(Outbox& out);
  void close_round(const msg::RoundClosed& closed, Outbox& out);
  void emit_trained(WorkerId lead, const SampleRange& range, Outbox& out);
  void emit_returned(WorkerId lead, const SampleRange& range, Outbox& out);

  // Evaluation.
  void start_snapshot_if_due(Outbox& out);
  void propose_snapshot(Iteration iteration, Outbox& out);
  void voted(const msg::SnapshotVote& vote, Outbox& out);

  // The end.
  void stop(msg::RunEnded::Reason reason, std::string text, Outbox& out);
  void finish_if_done(Outbox& out);
  void finish(Outbox& out);

  /// Every change of a member's state.
  void enter(WorkerId lead, State state);
  /// In order.
  std::vector<WorkerId> members_in(std::initializer_list<State> states) const;
  std::size_t count_in(std::initializer_list<State> states) const;
  /// Who has a part in the rounds to come: the running, and those that are being admitted.
  const std::vector<WorkerId>& taking_part();

  bool knows(WorkerId worker) const { return worker.value() < job_->plan.workers; }
  Member& member_of(WorkerId worker) { return members_.at(job_->stages->lead_of(worker)); }
  Member::Stage& stage_of(WorkerId worker) {
    return member_of(worker).stages[job_->stages->stage_of(worker)];
  }
  std::vector<WorkerId> workers_of(WorkerId lead) const;
  void to_shards(const Body& body, Outbox& out);
  /// Those that have parameters of the worker's stage.
  void to_shards_of(WorkerId worker, const Body& body, Outbox& out);
  void to_worker(WorkerId worker, Body body, Outbox& out);
  void to_stages(WorkerId lead, const Body& body, Outbox& out);
  void report(Outbox& out);

  std::shared_ptr<const Job> job_;
  std::shared_ptr<Balance> balance_;
  LeaseBook leases_;
  std::optional<AdaptiveBound> bound_;       // adaptive alone
  std::map<WorkerId, WorkerTime> interval_;  // since the bound was last decided
  Phase phase_ = Phase::gathering;
  std::map<WorkerId, Member> members_;          // by lead
  std::size_t pairs_ = 0;                       // of a stage and a shard with parameters of it
  std::array<std::set<WorkerId>, 8> in_state_;  // those of members_, by state
  std::vector<WorkerId> taking_part_;           // as it was when last asked for
  bool taking_part_changed_ = true;
  std::set<WorkerId> known_;  // admitting, and all shards have answered
  View view_;
  /// Backup: requests that may be answered by what comes back from rounds that are open.
  std::map<WorkerId, msg::WantLease> waiting_;

  struct SnapshotInFlight {
    std::uint64_t id = 0;
    Iteration iteration;
    std::size_t votes_missing = 0;
    Iteration largest;
    bool refused = false;
  };
  std::optional<SnapshotInFlight> snapshot_;
  std::uint64_t next_snapshot_ = 1;
  double next_evaluation_ = 0;  // in samples leased

  std::uint64_t partial_pushes_ = 0;
  std::uint64_t dropped_pushes_ = 0;
  msg::RunEnded end_;
};

}  // namespace leeway
