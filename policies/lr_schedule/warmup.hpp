#pragma once
// WarmupLr: a linear rise before another schedule.
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// Rises from `start`, a share of the full rate, to the full rate over `epochs`, then follows
/// `then`. The time of `then` starts at the end of the rise, and its planned length is the rest of
/// the run.
class WarmupLr final : public LrSchedule {
 public:
  /// Requires epochs > 0.
  WarmupLr(double epochs, double start, std::unique_ptr<LrSchedule> then)
      : warmup_(epochs), start_(start), then_(std::move(then)) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  double warmup_;
  double start_;
  std::unique_ptr<LrSchedule> then_;
};

}  // namespace leeway
