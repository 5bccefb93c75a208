#pragma once
// StepSchedule: the learning rate drops by a factor at regular times.
#include "policies/schedule/schedule.hpp"

namespace leeway {

/// factor^n after n full periods of `every` epochs. No drop when `every` is not positive.
class StepSchedule final : public Schedule {
 public:
  explicit StepSchedule(const plan::Step& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  plan::Step spec_;
};

}  // namespace leeway
