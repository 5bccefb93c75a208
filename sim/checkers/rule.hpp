#pragma once
// RuleChecker: property 1, no pull is answered against the rule.
#include <map>
#include <memory>
#include <utility>

#include "actors/job.hpp"
#include "sim/checkers/clocks.hpp"

namespace leeway::sim {

class RuleChecker final : public Checker {
 public:
  RuleChecker(std::shared_ptr<const Job> job, std::shared_ptr<ClockChecker> clocks)
      : Checker("no pull is answered against the rule (1)"),
        job_(std::move(job)),
        clocks_(std::move(clocks)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  std::shared_ptr<const Job> job_;
  std::shared_ptr<ClockChecker> clocks_;
  /// own_clock of the pulls that came and are not answered yet, by shard.
  std::map<Address, std::map<std::pair<WorkerId, Iteration>, std::int64_t>> own_clocks_;
};

}  // namespace leeway::sim
