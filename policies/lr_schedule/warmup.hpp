#pragma once
// WarmupLr: a linear rise before another schedule.
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// Rises from 0 to the full rate over `epochs`, then follows `then`. The time of `then` starts at
/// the end of the rise, and its planned length is the rest of the run.
class WarmupLr final : public LrSchedule {
 public:
  /// Requires epochs > 0.
  WarmupLr(double epochs, std::unique_ptr<LrSchedule> then)
      : warmup_(epochs), then_(std::move(then)) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  double warmup_;
  std::unique_ptr<LrSchedule> then_;
};

}  // namespace leeway
