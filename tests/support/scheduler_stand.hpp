#pragma once
// SchedulerStand: one Scheduler; the test plays all other actors.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/scheduler/scheduler.hpp"
#include "core/check.hpp"
#include "tests/support/recording_outbox.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

/// Pipelines whose parameters are on three shards.
inline Plan piped_plan(std::uint32_t workers = 4, std::uint32_t stages = 2) {
  Plan plan = tiny_plan();
  plan.pipeline.stages = stages;
  plan.workers = workers;
  plan.shards = 3;
  return plan;
}

/// The second incarnation of a worker that was evicted while it lived, and of one that was started
/// again.
inline const Incarnation kNext(2);
inline const Incarnation kSecondLife = first_incarnation(2);

class SchedulerStand final : public RecordingOutbox {
 public:
  explicit SchedulerStand(const Plan& plan, const std::set<WorkerId>& later = {})
      : job_(job_of(plan)), scheduler_(job_, later) {
    scheduler_.on_start(*this);
  }

  const Job& job() const { return *job_; }
  const Stages& stages() const { return *job_->stages; }
  std::string describe() const { return scheduler_.describe(); }

  // ---- what the scheduler receives ----

  void hears(Address from, Body body, Incarnation incarnation = Incarnation(1)) {
    scheduler_.on_message(from, encode({.incarnation = incarnation, .body = std::move(body)}),
                          *this);
  }
  void hears(std::uint32_t worker, Body body, Incarnation incarnation = Incarnation(1)) {
    hears(address_of(WorkerId(worker)), std::move(body), incarnation);
  }
  void joins(std::uint32_t worker, Incarnation incarnation = Incarnation(1)) {
    hears(worker, msg::Join{}, incarnation);
  }
  void ends(std::uint32_t worker, const EndReason& reason = "boom") {
    scheduler_.on_down(address_of(WorkerId(worker)), reason, *this);
  }
  void reconnects(std::uint32_t worker) { scheduler_.on_link(address_of(WorkerId(worker)), *this); }
  /// The report timer rings.
  void ticks() { scheduler_.on_timer(1, *this); }

  // ---- what many tests do ----

  /// The pairs of a pipeline.
  Pairs pairs_of(std::uint32_t lead) const {
    Pairs pairs;
    for (std::uint32_t stage = 0; stage < stages().count(); ++stage)
      for (const ShardId shard : stages().share(stage).shards)
        pairs.emplace(stages().worker(WorkerId(lead), stage), shard);
    return pairs;
  }
  /// The shards answer each Admit with the proposed iteration, but at least with `least`.
  void answer_admits(Iteration least = {}) {
    for (const auto& asked : take<msg::Admit>())
      hears(asked.to, msg::Admitted{asked.body.worker, std::max(least, asked.body.iteration),
                                    asked.body.view});
  }
  /// The shards answer each Fence: they have `clock` whole iterations and nothing of the next.
  void answer_fences(Clock clock = {}) {
    for (const auto& asked : take<msg::Fence>())
      hears(asked.to, msg::Fenced{asked.body.worker, clock, {}});
  }
  /// Pipeline 0 is evicted: worker 1 ends, and all shards have answered.
  void loses_the_first() {
    ends(1);
    answer_fences();
    forget();
  }
  /// Why the run ended; empty while it goes on.
  std::string end() {
    const auto end = take<msg::RunEnded>();
    return end.empty() ? "" : end.front().body.text;
  }
  /// All workers join, are admitted and started.
  void begins() {
    for (std::uint32_t worker = 0; worker < job_->plan.workers; ++worker) joins(worker);
    answer_admits();
    LW_CHECK(take<msg::Start>().size() == job_->plan.workers);
    forget();
  }
  std::optional<msg::Lease> leases(std::uint32_t lead, Iteration next, Clock clock,
                                   Incarnation incarnation = Incarnation(1)) {
    hears(lead, msg::WantLease{.next = next, .clock = clock}, incarnation);
    const auto answers = take<msg::Lease>();
    if (answers.empty()) return std::nullopt;
    LW_CHECK(answers.size() == 1 && answers[0].to == address_of(WorkerId(lead)));
    return answers[0].body;
  }
  /// The pipeline trains all samples from iteration `next` on. Returns its next iteration.
  Iteration trains_all(std::uint32_t lead, Iteration next = {},
                       Incarnation incarnation = Incarnation(1)) {
    while (const auto lease = leases(lead, next, Clock(next.value()), incarnation))
      next = next + lease->iterations();
    LW_CHECK(told<msg::NoData>() == std::vector{lead});
    return next;
  }

 private:
  std::shared_ptr<const Job> job_;
  Scheduler scheduler_;
};

}  // namespace leeway::test
