#pragma once
// OrderChecker: each order of the scheduler is carried out once, and in order.
#include <set>

#include "sim/checkers/checker.hpp"
#include "sim/checkers/order_numbers.hpp"

namespace leeway::sim {

/// Checks the events that a shard emits while it handles an order: there are none if the order is a
/// repeat, or an earlier one is missing.
class OrderChecker final : public Checker {
 public:
  OrderChecker() : Checker("each order is carried out once, and in order") {}
  void on_event(Instant, Address actor, const Event& event) override;
  void on_delivered(Instant, const Letter& letter) override;

 private:
  OrderNumbers numbers_;
  std::set<Address> ignoring_;  // shards whose last message was an order that they must ignore
};

}  // namespace leeway::sim
