#pragma once
// StepLr: the learning rate drops by a factor at regular times.
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// factor^n after n full periods of `every` epochs. No drop when `every` is not positive.
class StepLr final : public LrSchedule {
 public:
  explicit StepLr(const plan::Step& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  plan::Step spec_;
};

}  // namespace leeway
