#pragma once
// Departures: members that become idle, leave on request, stop with the run, or are evicted
// (docs/staleness.md, "Membership").
#include <memory>

#include "actors/scheduler/bound_control.hpp"
#include "actors/scheduler/leases.hpp"
#include "actors/scheduler/mailer.hpp"
#include "actors/scheduler/run_control.hpp"

namespace leeway {

class Departures {
 public:
  Departures(const Job& job, Roster& roster, const Mailer& mailer, Leases& leases,
             BoundControl& bound, RunControl& run)
      : stages_(job.stages),
        roster_(roster),
        mailer_(mailer),
        leases_(leases),
        bound_(bound),
        run_(run) {}

  /// A stage has no samples or waits at a barrier, and all its pushes are acknowledged. True if its
  /// member is idle now, or waits at a barrier now.
  bool idle(WorkerId worker, const msg::Idle& sent, Outbox& out);

  /// Asks the worker's member to leave while the run continues. True if the member still has to
  /// stop; false if it does not take part and has left.
  bool leave(WorkerId worker, Outbox& out);

  enum class AfterStopped : std::uint8_t {
    waits,       // for other stages, or for a Stop
    start_lost,  // the stage never received its Start: its member must be evicted
    stopped,     // all stages of the member have stopped with the run
    left,        // all stages of the member have left
  };
  AfterStopped stopped(WorkerId worker, Session session, const msg::Stopped& sent, Outbox& out);

  /// The link to a worker works again: repeats a Stop that may be lost.
  void send_again(WorkerId worker, Outbox& out) const;

  /// Ends the member's participation: untrained samples of its leases go back, and other members
  /// complete its partial iterations.
  void part_with(WorkerId lead, const PartialIterations& partial, Outbox& out);

 private:
  using State = Member::State;

  /// Takes the member out of the shards' clocks.
  void remove(WorkerId lead, Outbox& out);
  void emit_left(WorkerId lead, Outbox& out) const;
  /// The answers that shards would give to a Fence, from the clocks at which the stages stopped.
  /// Has no partial iterations if the clocks agree.
  PartialIterations stopped_apart(const Member& member) const;

  std::shared_ptr<const Stages> stages_;
  Roster& roster_;
  const Mailer& mailer_;
  Leases& leases_;
  BoundControl& bound_;
  RunControl& run_;
};

}  // namespace leeway
