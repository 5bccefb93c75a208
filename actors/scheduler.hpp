#pragma once
// Scheduler: decides who takes part, leases samples, moves the staleness bound if it is adaptive,
// times the evaluations, and ends the run.
//
// A worker, as the scheduler sees it (a line each, so that formatting leaves them alone):
//
// - absent -- Join --> joined -- all have joined --> admitting -- all shards know it --> running
//
// - running -- Idle --> idle -- data came back --> admitting
//
// - any of these -- it ends --> fencing -- all shards answered --> gone -- Join of a new life -->
// joined
//
// - running, idle -- Stopped, after Stop --> stopped
//
// - joined, admitting, running, idle -- Stopped, after the Stop of a Leave --> gone
//
// The run: gathering (until the plan's workers have joined) -> training -> stopping (Stop sent) ->
// ended (Finish sent).
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/lease_book.hpp"
#include "actors/protocol_role.hpp"
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
  enum class State : std::uint8_t {
    absent,
    joined,
    admitting,
    running,
    idle,
    fencing,
    gone,
    stopped
  };

  struct Member {
    State state = State::absent;
    Incarnation incarnation{1};
    std::optional<Incarnation> comes_back;  // joined again before its old life was settled
    Clock clock;                            // acknowledged by all shards, as far as known
    std::size_t missing = 0;                // answers of shards to Admit or Fence
    Iteration start;                        // largest clock that a shard admitted it at
    bool uneven = false;                    // shards admitted it at different clocks
    std::uint64_t starts = 0;               // Starts that it was sent
    Iteration late;                         // backup: the round that it was told to go on with
    bool heard = true;                      // something came of it since the last one
    std::vector<msg::Fenced> fenced;
    bool took_part = false;  // had started when it was evicted
    std::string end_reason;
    std::optional<std::uint32_t> leaves;  // the life in which it was asked to
  };

  void on_envelope(Address from, Envelope& envelope, Outbox& out) override;
  void on_worker(WorkerId worker, Envelope& envelope, Outbox& out);
  void on_shard(Address from, Envelope& envelope, Outbox& out);

  // Membership.
  void join(WorkerId worker, Incarnation incarnation, Outbox& out);
  void begin_if_gathered(Outbox& out);
  void admit(WorkerId worker, Outbox& out);
  void admitted(const msg::Admitted& answer, Outbox& out);
  void start_admitted(Outbox& out);
  void evict(WorkerId worker, const std::string& reason, Outbox& out);
  void fenced(const msg::Fenced& answer, Outbox& out);
  void remove(WorkerId worker, Outbox& out);
  /// Asks a worker to stop for good, while the run goes on.
  void leave(WorkerId worker, Outbox& out);
  bool leaving(const Member& member) const { return member.leaves == life_of(member.incarnation); }
  void stopped(WorkerId worker, Clock clock, Outbox& out);
  /// The worker takes part no longer: what it was leased and has not trained goes back. Returns how
  /// many samples.
  std::uint64_t part_with(WorkerId worker, Outbox& out);
  void fail_if_alone(WorkerId last_to_end);
  /// True when the plan brings a worker that is not there, or starts one again.
  bool anybody_to_come() const;
  /// Tells a worker that its incarnation no longer takes part, and may come back under the next.
  void refuse_evicted(WorkerId worker, Outbox& out);
  /// Begins a new view of the membership.
  View next_view() { return view_ = View(view_.value() + 1); }

  // Data.
  void lease(WorkerId worker, const msg::WantLease& want, Outbox& out);
  /// Takes in how long the worker has waited and computed.
  void measured(WorkerId worker, const msg::WantLease& want, Outbox& out);
  /// Moves the staleness bound, once all have said how long they waited since it was last decided.
  void adapt(Outbox& out);
  void confirm(WorkerId worker, Clock clock, Outbox& out);
  /// Where the worker may stand at most.
  Iteration farthest(const Member& member) const {
    return std::max(leases_.horizon(), member.start);
  }
  /// There may be something to lease again: for those who were not answered, and for the idle.
  void data_came_back(Outbox& out);
  void close_round(const msg::RoundClosed& closed, Outbox& out);
  void emit_returned(WorkerId worker, const SampleRange& range, Outbox& out);

  // Evaluation.
  void start_cut_if_due(Outbox& out);
  void propose_cut(Iteration iteration, Outbox& out);
  void voted(const msg::CutVote& vote, Outbox& out);

  // The end.
  void stop(msg::RunEnded::Reason reason, std::string text, Outbox& out);
  void finish_if_done(Outbox& out);
  void finish(Outbox& out);

  /// Every change of a member's state.
  void enter(WorkerId worker, State state);
  /// In order.
  std::vector<WorkerId> members_in(std::initializer_list<State> states) const;
  std::size_t count_in(std::initializer_list<State> states) const;
  /// Who has a part in the rounds to come: the running, and those that are being admitted.
  const std::vector<WorkerId>& taking_part();
  void to_shards(const Body& body, Outbox& out);
  void to_worker(WorkerId worker, Body body, Outbox& out);
  void report(Outbox& out);

  std::shared_ptr<const Job> job_;
  std::shared_ptr<Balance> balance_;
  LeaseBook leases_;
  std::optional<AdaptiveBound> bound_;       // adaptive alone
  std::map<WorkerId, WorkerTime> interval_;  // since the bound was last decided
  Phase phase_ = Phase::gathering;
  std::map<WorkerId, Member> members_;
  std::array<std::set<WorkerId>, 8> in_state_;  // those of members_, by state
  std::vector<WorkerId> taking_part_;           // as it was when last asked for
  bool taking_part_changed_ = true;
  std::set<WorkerId> known_;  // admitting, and all shards have answered
  View view_;
  /// Backup: requests that may be answered by what comes back from rounds that are open.
  std::map<WorkerId, msg::WantLease> waiting_;

  struct CutInFlight {
    std::uint64_t id = 0;
    Iteration iteration;
    std::size_t votes_missing = 0;
    Iteration largest;
    bool refused = false;
  };
  std::optional<CutInFlight> cut_;
  std::uint64_t next_cut_ = 1;
  double next_evaluation_ = 0;  // in samples leased

  std::uint64_t torn_pushes_ = 0;
  std::uint64_t late_pushes_ = 0;
  msg::RunEnded end_;
};

}  // namespace leeway
