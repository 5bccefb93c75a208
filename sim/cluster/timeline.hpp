#pragma once
// Timeline: calls at virtual times. Calls of the same time run in the order in which they were
// added.
#include <algorithm>
#include <functional>
#include <optional>

#include "sim/due_queue.hpp"
#include "sim/slots.hpp"

namespace leeway::sim {

class Timeline {
 public:
  using Call = std::function<void()>;

  Instant now() const { return now_; }
  void at(Instant time, Call call) { due_.push(std::max(time, now_), calls_.put(std::move(call))); }
  void after(Duration delay, Call call) { at(now_ + delay, std::move(call)); }

  /// The time of the next call; none if there is none.
  std::optional<Instant> next_at() const {
    return due_.empty() ? std::nullopt : std::optional(due_.next_at());
  }
  void advance(Instant now) { now_ = std::max(now_, now); }
  /// Runs the next call at its time. Requires that there is one.
  void run_next() {
    advance(due_.next_at());
    const Call call = calls_.take(due_.next_slot());
    due_.pop();
    call();
  }

 private:
  DueQueue due_;  // of calls_
  Slots<Call> calls_;
  Instant now_;
};

}  // namespace leeway::sim
