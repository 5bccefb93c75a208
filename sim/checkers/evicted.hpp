#pragma once
// EvictedChecker: nobody answers the dead, and the dead say nothing.
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Who has been fenced at a shard, or evicted by the scheduler, is told nothing but refusals until
/// it comes back under a new incarnation.
class EvictedChecker final : public Checker {
 public:
  explicit EvictedChecker(std::shared_ptr<const Job> job)
      : Checker("nobody answers the dead"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;
  void on_ended(Instant, Address actor) override { ended_.insert(actor); }
  void on_restarted(Instant, Address actor) override { ended_.erase(actor); }

 private:
  std::shared_ptr<const Job> job_;
  std::set<Address> ended_;
  std::set<std::pair<Address, Address>> fenced_;  // shard, worker
  std::map<Address, Incarnation> started_;        // last life that the scheduler started
  std::map<Address, Incarnation> evicted_;        // last life that it evicted
};

}  // namespace leeway::sim
