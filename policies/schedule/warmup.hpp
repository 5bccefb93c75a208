#pragma once
// WarmupSchedule: a linear rise before another schedule.
#include "policies/schedule/schedule.hpp"

namespace leeway {

/// Rises from 0 to the full rate over `epochs`, then follows `then`, whose time begins when the
/// rise ends and whose planned length is what remains.
class WarmupSchedule final : public Schedule {
 public:
  /// Requires epochs > 0.
  WarmupSchedule(double epochs, std::unique_ptr<Schedule> then)
      : warmup_(epochs), then_(std::move(then)) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  double warmup_;
  std::unique_ptr<Schedule> then_;
};

}  // namespace leeway
