#pragma once
// SchedulerStand: a Scheduler alone, with everybody else played by hand. What it says is kept until
// it is asked for; nothing is delivered.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/scheduler/scheduler.hpp"
#include "core/check.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {

/// Pipelines of two stages, unless said otherwise, whose parameters are on three shards.
inline Plan piped_plan(std::uint32_t workers = 4, std::uint32_t stages = 2) {
  Plan plan = tiny_plan();
  plan.pipeline.stages = stages;
  plan.workers = workers;
  plan.shards = 3;
  return plan;
}

/// In which a worker comes back that was evicted while it lives, and one that was started again.
inline const Incarnation kNext(2);
inline const Incarnation kSecondLife = first_incarnation(2);

using Workers = std::vector<std::uint32_t>;

/// A message of the scheduler.
template <class T>
struct Said {
  Address to;
  Incarnation incarnation;
  T body;
};

/// A stage and a shard that has parameters of it.
using Pairs = std::set<std::pair<WorkerId, ShardId>>;

class SchedulerStand final : private Outbox {
 public:
  explicit SchedulerStand(const Plan& plan, const std::set<WorkerId>& later = {})
      : job_(job_of(plan)), scheduler_(job_, later) {
    scheduler_.on_start(*this);
  }

  const Job& job() const { return *job_; }
  const Stages& stages() const { return *job_->stages; }
  /// How often it asked to be told of the actor's end.
  std::size_t watched(std::uint32_t worker) const {
    return watched_.count(address_of(WorkerId(worker)));
  }
  std::string describe() const { return scheduler_.describe(); }

  // ---- what the scheduler hears ----

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
  void ends(std::uint32_t worker, const std::string& reason = "boom") {
    scheduler_.on_down(address_of(WorkerId(worker)), reason, *this);
  }
  void reconnects(std::uint32_t worker) { scheduler_.on_link(address_of(WorkerId(worker)), *this); }
  /// Of the report timer.
  void ticks() { scheduler_.on_timer(1, *this); }

  // ---- what it has said ----

  /// The messages of that kind since they were last asked for, in order.
  template <class T>
  std::vector<Said<T>> take() {
    std::vector<Said<T>> taken;
    std::erase_if(sent_, [&](auto& letter) {
      auto* body = std::get_if<T>(&letter.second.body);
      if (body) taken.push_back({letter.first, letter.second.incarnation, std::move(*body)});
      return body != nullptr;
    });
    return taken;
  }
  /// Of a kind that goes to workers: to whom, in order.
  template <class T>
  Workers told() {
    Workers workers;
    for (const auto& said : take<T>())
      if (said.to.kind == RoleKind::worker) workers.push_back(said.to.index);
    return workers;
  }
  /// Of a kind that goes to shards and is about a worker: about whom, and to which.
  template <class T>
  Pairs pairs() {
    Pairs pairs;
    for (const auto& said : take<T>())
      LW_CHECK(pairs.emplace(said.body.worker, ShardId(said.to.index)).second, "said twice");
    return pairs;
  }
  bool says_nothing() const { return sent_.empty(); }
  void forget() { sent_.clear(); }
  /// Whom events of that kind were about, since they were last asked for.
  Workers happened(Event::Kind kind) {
    Workers workers;
    for (const auto& event : events(kind)) workers.push_back(event.worker.value());
    return workers;
  }
  std::vector<Event> events(Event::Kind kind) {
    std::vector<Event> taken;
    std::erase_if(events_, [&](const Event& event) {
      if (event.kind == kind) taken.push_back(event);
      return event.kind == kind;
    });
    return taken;
  }

  // ---- what is done often ----

  /// The pairs of a pipeline, or of one of its stages.
  Pairs pairs_of(std::uint32_t lead) const {
    Pairs pairs;
    for (std::uint32_t stage = 0; stage < stages().count(); ++stage)
      for (const ShardId shard : stages().share(stage).shards)
        pairs.emplace(stages().worker(WorkerId(lead), stage), shard);
    return pairs;
  }
  /// Shards answer what they were asked to Admit with where they stand.
  void answer_admits(Iteration least = {}) {
    for (const auto& asked : take<msg::Admit>())
      hears(asked.to, msg::Admitted{asked.body.worker, std::max(least, asked.body.iteration),
                                    asked.body.view});
  }
  /// Shards answer what they were asked to Fence: `clock` iterations whole, and nothing of the
  /// next.
  void answer_fences(Clock clock = {}) {
    for (const auto& asked : take<msg::Fence>())
      hears(asked.to, msg::Fenced{asked.body.worker, clock, {}});
  }
  /// Pipeline 0 leaves the run: worker 1 ends, and all shards have answered.
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
  /// All join, are admitted and started.
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
  /// The pipeline trains all that there is from `next` on. Returns where it stands then.
  Iteration trains_all(std::uint32_t lead, Iteration next = {},
                       Incarnation incarnation = Incarnation(1)) {
    while (const auto lease = leases(lead, next, Clock(next.value()), incarnation))
      next = next + lease->iterations();
    LW_CHECK(told<msg::NoData>() == std::vector{lead});
    return next;
  }

 private:
  Instant now() const override { return {}; }
  Rng& random() override { return rng_; }
  void send(Address to, Message message) override {
    auto envelope = decode(message);
    LW_CHECK(bool(envelope), envelope ? std::string() : envelope.error().text);
    sent_.emplace_back(to, std::move(*envelope));
  }
  void after(Duration, TimerToken) override {}
  void compute(std::shared_ptr<Work>) override { LW_CHECK(false); }
  void watch(Address actor) override { watched_.insert(actor); }
  void emit(const Event& event) override { events_.push_back(event); }

  std::shared_ptr<const Job> job_;
  Scheduler scheduler_;
  Rng rng_{1};
  std::vector<std::pair<Address, Envelope>> sent_;
  std::vector<Event> events_;
  std::multiset<Address> watched_;
};

}  // namespace leeway::test
