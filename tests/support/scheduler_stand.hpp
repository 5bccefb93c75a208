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

/// The Join of a worker after an eviction, and that of a restarted worker.
inline const JoinNonce kRejoined(first_nonce(1).value() + 1);
inline const JoinNonce kRestarted = first_nonce(2);

class SchedulerStand final : public RecordingOutbox {
 public:
  explicit SchedulerStand(const Plan& plan, const std::set<WorkerId>& later = {})
      : job_(job_of(plan)), scheduler_(job_, later) {
    scheduler_.on_start(*this);
  }

  const Job& job() const { return *job_; }
  const Stages& stages() const { return *job_->stages; }
  std::string describe() const { return scheduler_.describe(); }

  // ---- input of the scheduler ----

  void deliver(Address from, Body body, Session session = Session(1)) {
    scheduler_.on_message(from, encode({.session = session, .body = std::move(body)}), *this);
  }
  /// In the worker's session, unless another is given.
  void deliver(std::uint32_t worker, Body body, std::optional<Session> session = {}) {
    deliver(address_of(WorkerId(worker)), std::move(body), session.value_or(session_of(worker)));
  }
  void join(std::uint32_t worker, JoinNonce nonce = first_nonce(1)) {
    nonces_[worker] = nonce;
    deliver(worker, msg::Join{nonce});
  }
  void stop(std::uint32_t worker, Clock clock = {}) {
    deliver(worker, msg::Stopped{clock, nonces_[worker]});
  }
  void end_worker(std::uint32_t worker, const EndReason& reason = "boom") {
    scheduler_.on_down(address_of(WorkerId(worker)), reason, *this);
  }
  void reconnect(std::uint32_t worker) { scheduler_.on_link(address_of(WorkerId(worker)), *this); }
  void fire_report_timer() { scheduler_.on_timer(1, *this); }

  // ---- common steps ----

  /// The workers of a pipeline, each with the shards that have its parameters.
  Pairs pairs_of(std::uint32_t lead) const {
    Pairs pairs;
    for (std::uint32_t stage = 0; stage < stages().count(); ++stage)
      for (const ShardId shard : stages().share(stage).shards)
        pairs.emplace(stages().worker(WorkerId(lead), stage), shard);
    return pairs;
  }
  /// Answers each Admit for its shard with the proposed iteration, or with `least` if that is
  /// larger.
  void answer_admits(Iteration least = {}) {
    for (const auto& admit : take<msg::Admit>())
      deliver(admit.to, msg::Admitted{admit.body.worker, std::max(least, admit.body.iteration),
                                      admit.body.view});
  }
  /// Answers each Fence for its shard: `clock` whole iterations, no bucket of the next.
  void answer_fences(Clock clock = {}) {
    for (const auto& fence : take<msg::Fence>())
      deliver(fence.to, msg::Fenced{fence.body.worker, clock, {}});
  }
  /// Evicts pipeline 0: worker 1 ends, and all shards answer.
  void evict_first_pipeline() {
    end_worker(1);
    answer_fences();
    forget();
  }
  /// The reason of the run's end; empty before the end.
  std::string end_text() {
    const auto end = take<msg::RunEnded>();
    return end.empty() ? "" : end.front().body.text;
  }
  /// Admits and starts all workers.
  void start_all() {
    for (std::uint32_t worker = 0; worker < job_->plan.workers; ++worker) join(worker);
    answer_admits();
    LW_CHECK(take<msg::Start>().size() == job_->plan.workers);
    forget();
  }
  std::optional<msg::Lease> request_lease(std::uint32_t lead, Iteration next, Clock clock,
                                          std::optional<Session> session = {}) {
    deliver(lead, msg::WantLease{.next = next, .clock = clock}, session);
    const auto answers = take<msg::Lease>();
    if (answers.empty()) return std::nullopt;
    LW_CHECK(answers.size() == 1 && answers[0].to == address_of(WorkerId(lead)));
    return answers[0].body;
  }
  /// Trains all samples with one pipeline, from iteration `next` on. Returns its next iteration.
  Iteration train_all(std::uint32_t lead, Iteration next = {}) {
    while (const auto lease = request_lease(lead, next, Clock(next.value())))
      next = next + lease->iterations();
    LW_CHECK(receivers_of<msg::NoData>() == std::vector{lead});
    return next;
  }

 private:
  std::shared_ptr<const Job> job_;
  Scheduler scheduler_;
  std::map<std::uint32_t, JoinNonce> nonces_;  // of each worker's last Join
};

}  // namespace leeway::test
