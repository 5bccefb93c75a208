#pragma once
// RunControl: the phases of a run, the reports about it, and its end.
//
// gathering (until the plan's pipelines have joined) -> training -> stopping (Stop was sent)
// -> ended (Finish was sent)
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/scheduler/bound_control.hpp"
#include "actors/scheduler/checkpoints.hpp"
#include "actors/scheduler/leases.hpp"
#include "messages/monitor.hpp"

namespace leeway {

class RunControl {
 public:
  enum class Phase : std::uint8_t { gathering, training, stopping, ended };

  RunControl(const Job& job, const Roster& roster, const Mailer& mailer, const LeaseBook& book,
             const BoundControl& bound);

  Phase phase() const { return data_.phase; }
  bool is_training() const { return phase() == Phase::training; }
  bool is_over() const { return phase() == Phase::stopping || phase() == Phase::ended; }

  void begin_training() { data_.phase = Phase::training; }
  /// Asks all workers to stop. Without effect if the run is over.
  void stop(msg::RunEnded::Reason reason, std::string text, Outbox& out);
  /// Stops the run if all samples are trained; ends it if it stops and all members have stopped.
  void finish_if_done(Outbox& out);
  /// Fails the run if no member takes part and none may return. `last`: the last member to end.
  void fail_if_alone(WorkerId last, Outbox& out);
  /// Ends the run without waiting for the workers, which wait for a lost shard.
  void fail_at_once(std::string text, Outbox& out);

  PushCounts counts() const { return {data_.partial_pushes, data_.dropped_pushes}; }
  void count_partial_pushes(std::uint64_t count) { data_.partial_pushes += count; }
  void count_dropped_pushes(std::uint64_t count) { data_.dropped_pushes += count; }
  void report(Outbox& out) const;
  std::string describe() const;

 private:
  using State = Member::State;

  /// The mutable state.
  struct Data {
    Phase phase = Phase::gathering;
    msg::RunEnded end;
    std::uint64_t partial_pushes = 0;
    std::uint64_t dropped_pushes = 0;
  };

  void finish(Outbox& out);
  /// True for a member that is gone and may take part again: each of its stages lives, or the plan
  /// restarts or adds it.
  bool may_return(WorkerId lead) const;

  const Roster& roster_;
  const Mailer& mailer_;
  const LeaseBook& book_;
  const BoundControl& bound_;
  std::shared_ptr<const Stages> stages_;
  std::vector<plan::Fault> faults_;
  std::uint64_t most_iterations_;
  Data data_;
};

}  // namespace leeway
