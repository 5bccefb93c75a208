#pragma once
// StageWaits: the time that a stage waits for its neighbours.
#include <cstdint>
#include <utility>

#include "core/time.hpp"
#include "messages/monitor.hpp"

namespace leeway {

/// The reason why the next operation waits: none, or samples of the scheduler; the previous stage;
/// the next stage; weights.
enum class StageWait : std::uint8_t { none, previous, next, weights };

class StageWaits {
 public:
  /// Waiting times: all, of this for the previous stage, and for the next one.
  struct Sums {
    Duration all, before, after;
  };

  /// The stage does not compute from now on.
  void begin(Instant now) {
    waits_ = true;
    waits_for_ = StageWait::none;
    since_ = now;
  }
  /// The next operation waits for `what`. Adds the time since the last call to the report; without
  /// effect while the stage computes.
  void wait_for(StageWait what, Instant now, msg::WorkerReport& report) {
    if (!waits_) return;
    const Duration time = now - since_;
    report.wait += time;
    sums_.all += time;
    if (waits_for_ == StageWait::previous) {
      report.wait_before += time;
      sums_.before += time;
    } else if (waits_for_ == StageWait::next) {
      report.wait_after += time;
      sums_.after += time;
    }
    waits_for_ = what;
    since_ = now;
  }
  /// The stage computes, or starts again.
  void end(Instant now, msg::WorkerReport& report) {
    wait_for(StageWait::none, now, report);
    waits_ = false;
  }
  /// The sums since the last call.
  Sums take() { return std::exchange(sums_, {}); }

 private:
  bool waits_ = false;
  StageWait waits_for_ = StageWait::none;
  Instant since_;
  Sums sums_;
};

}  // namespace leeway
