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
  void start(Instant now) {
    waits_for_ = StageWait::none;
    since_ = now;
  }
  /// Starts a wait for `what`. Adds the time of the previous wait to the report.
  void wait_for(StageWait what, Instant now, msg::WorkerReport& report) {
    const Duration time = now - since_;
    if (waits_for_ == StageWait::previous) report.wait_before += time;
    if (waits_for_ == StageWait::next) report.wait_after += time;
    waits_for_ = what;
    since_ = now;
  }

 private:
  StageWait waits_for_ = StageWait::none;
  Instant since_;
};

}  // namespace leeway
