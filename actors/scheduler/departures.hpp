#pragma once
// Departures: members that run out of samples, are asked to leave, stop with the run, or are out
// (docs/staleness.md, "Who takes part").
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

  /// A stage has no samples, and all its pushes are acknowledged. True if its member is idle now.
  bool idle(WorkerId worker, const msg::Idle& sent, Outbox& out);

  /// Asks the worker's member to leave while the run goes on. True if it still has to stop, false
  /// if it takes no part and has left.
  bool leave(WorkerId worker, Outbox& out);

  enum class AfterStopped : std::uint8_t {
    waits,       // for other stages, or nothing asked it to stop
    start_lost,  // it never heard its Start: its member is to be evicted
    stopped,     // with the run, as all stages of its member
    left,        // as all stages of its member
  };
  AfterStopped stopped(WorkerId worker, const msg::Stopped& sent, Outbox& out);

  /// The link to a worker works again: it may not have heard the Stop.
  void send_again(WorkerId worker, Outbox& out) const;

  /// The member takes part no longer: untrained samples of its leases go back, and those of partial
  /// iterations are completed by others.
  void part_with(WorkerId lead, const PartialIterations& partial, Outbox& out);

 private:
  using State = Member::State;

  /// Takes the member out of the shards' clocks.
  void remove(WorkerId lead, Outbox& out);
  void emit_left(WorkerId lead, Outbox& out) const;
  /// The answers of shards to a Fence, by the clocks at which the stages stopped. Without partial
  /// iterations if these agree.
  PartialIterations stopped_apart(const Member& member) const;

  std::shared_ptr<const Stages> stages_;
  Roster& roster_;
  const Mailer& mailer_;
  Leases& leases_;
  BoundControl& bound_;
  RunControl& run_;
};

}  // namespace leeway
