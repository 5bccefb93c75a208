#pragma once
// LimitsChecker: every queue is bounded, as core/limits.hpp and the protocol say; for those between
// stages of a pipeline, see StageQueueChecker.
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/books.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Sizes of messages, pulls parked of one worker, and its pushes that a shard has taken whole and
/// not applied: those of the present iteration, with a prefetch those of the one before, and where
/// a pipeline is never emptied those of as many more as its weights may be older.
class LimitsChecker final : public Checker {
 public:
  explicit LimitsChecker(std::shared_ptr<const Job> job)
      : Checker("every queue is bounded"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  struct Worker {
    Incarnation incarnation;
    std::vector<Iteration> parked;
    std::int64_t began = 0;    // the iteration that it was admitted at
    std::int64_t applied = 0;  // parts, since then
  };
  std::shared_ptr<const Job> job_;
  Books<Worker> workers_;
};

}  // namespace leeway::sim
