#pragma once
// StageWaits: the time that a stage waits for its neighbours.
#include <cstdint>

#include "core/time.hpp"
#include "messages/monitor.hpp"

namespace leeway {

/// The reason why the next operation waits: none, or samples of the scheduler; the previous stage;
/// the next stage; weights.
enum class StageWait : std::uint8_t { none, previous, next, weights };

class StageWaits {
 public:
  /// The stage does not compute from now on.
  void begin(Instant now) {
    waits_ = true;
    waits_for_ = StageWait::none;
    begun_ = since_ = now;
  }
  /// The next operation waits for `what`. Adds the time of the previous reason to the report.
  void wait_for(StageWait what, Instant now, msg::WorkerReport& report) {
    const Duration time = now - since_;
    if (waits_for_ == StageWait::previous) report.wait_before += time;
    if (waits_for_ == StageWait::next) report.wait_after += time;
    waits_for_ = what;
    since_ = now;
  }
  /// The stage computes, or starts again. Adds the whole wait to the report; without effect while
  /// the stage computes.
  void end(Instant now, msg::WorkerReport& report) {
    if (!waits_) return;
    wait_for(StageWait::none, now, report);
    report.wait += now - begun_;
    waits_ = false;
  }

 private:
  bool waits_ = false;
  StageWait waits_for_ = StageWait::none;
  Instant begun_, since_;
};

}  // namespace leeway
