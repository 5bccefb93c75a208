#pragma once
// SchedulerParts: the components of a scheduler, for tests that call them directly.
#include <set>

#include "actors/scheduler/scheduler.hpp"
#include "tests/support/recording_outbox.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

struct SchedulerParts {
  explicit SchedulerParts(const Plan& plan, const std::set<WorkerId>& later = {})
      : SchedulerParts(job_of(plan), later) {}
  explicit SchedulerParts(std::shared_ptr<const Job> of, const std::set<WorkerId>& later = {})
      : job(std::move(of)),
        roster(*job, later),
        shards(channels_to_shards(*job)),
        mailer(*job, roster, shards),
        leases(*job, roster, mailer),
        bound(*job, roster, mailer),
        checkpoints(job, roster, leases, bound),
        snapshots(*job, roster, leases, mailer, checkpoints),
        run(*job, roster, mailer, leases.book(), bound, checkpoints, snapshots),
        admission(*job, roster, mailer, leases, run),
        evictions(*job, roster, mailer),
        departures(*job, roster, mailer, leases, bound, run),
        rounds(roster, mailer, leases, run) {}

  Member& member(std::uint32_t lead) { return roster.at(WorkerId(lead)); }
  /// Makes these members run from iteration 0, without messages.
  void set_running(const Workers& leads) {
    run.begin_training();
    for (const std::uint32_t lead : leads) {
      member(lead).session = Session(1);
      roster.enter(WorkerId(lead), Member::State::running);
    }
  }
  bool request_lease(std::uint32_t lead, Iteration next) {
    return leases.answer(WorkerId(lead), {.next = next}, out);
  }

  std::shared_ptr<const Job> job;
  Roster roster;
  std::vector<Channel> shards;
  Mailer mailer;
  Leases leases;
  BoundControl bound;
  Checkpoints checkpoints;
  SnapshotProposals snapshots;
  RunControl run;
  Admission admission;
  Evictions evictions;
  Departures departures;
  RoundCloser rounds;
  RecordingOutbox out;
};

/// One-stage pipelines.
inline Plan workers_plan(std::uint32_t workers, plan::Consistency consistency = plan::Ssp{1}) {
  Plan plan = tiny_plan();
  plan.workers = workers;
  plan.consistency = consistency;
  return plan;
}

}  // namespace leeway::test
