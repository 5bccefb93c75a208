#pragma once
// EvictedChecker: evicted workers get no answers, and ended actors send nothing.
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// A worker that a shard has fenced or the scheduler has evicted gets only refusals, until it
/// rejoins under a new session.
class EvictedChecker final : public Checker {
 public:
  explicit EvictedChecker(std::shared_ptr<const Job> job)
      : Checker("evicted workers get no answers"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_ended(Instant, Address actor) override { ended_.insert(actor); }
  void on_restarted(Instant, Address actor) override { ended_.erase(actor); }

 private:
  std::shared_ptr<const Job> job_;
  std::set<Address> ended_;
  std::set<std::pair<Address, Address>> fenced_;  // shard, worker
  std::map<Address, Session> begun_;              // the last that the scheduler admitted or started
  std::map<Address, Session> evicted_;            // the last that the scheduler evicted
};

}  // namespace leeway::sim
