#pragma once
// RuleChecker: property 1, no pull is answered against the rule.
#include <map>
#include <memory>
#include <utility>

#include "sim/checkers/bounds.hpp"

namespace leeway::sim {

class RuleChecker final : public Checker {
 public:
  RuleChecker(std::shared_ptr<ClockChecker> clocks, std::shared_ptr<BoundChecker> bounds)
      : Checker("no pull is answered against the rule (1)"),
        clocks_(std::move(clocks)),
        bounds_(std::move(bounds)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  std::shared_ptr<ClockChecker> clocks_;
  std::shared_ptr<BoundChecker> bounds_;
  /// own_clock of pulls without an answer, by shard.
  std::map<Address, std::map<std::pair<WorkerId, Iteration>, std::int64_t>> own_clocks_;
};

}  // namespace leeway::sim
