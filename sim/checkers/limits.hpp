#pragma once
// LimitsChecker: every queue respects its bound in core/limits.hpp or in the protocol.
// StageQueueChecker checks the queues between stages of a pipeline.
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/books.hpp"
#include "sim/checkers/checker.hpp"
#include "sim/checkers/order_numbers.hpp"

namespace leeway::sim {

/// Checks sizes of messages, parked pulls of one worker, and its complete pushes that a shard has
/// accepted but not applied. Pending may be the pushes of one iteration, with a prefetch of two. If
/// a pipeline is never flushed, its version lag is added.
class LimitsChecker final : public Checker {
 public:
  explicit LimitsChecker(std::shared_ptr<const Job> job)
      : Checker("every queue is bounded"), job_(std::move(job)) {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_sent(Instant, const Letter& letter) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  struct Worker {
    Session session;
    std::vector<Iteration> parked;
    std::int64_t began = 0;    // the iteration that it was admitted at
    std::int64_t applied = 0;  // buckets, since then
  };
  void check_parked(Address actor, const event::PullParked& pull);
  void check_pending(Address actor, const event::ClockMoved& moved);

  std::shared_ptr<const Job> job_;
  OrderNumbers orders_;
  Books<Worker> workers_;
};

}  // namespace leeway::sim
