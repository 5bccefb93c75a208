#pragma once
// ExponentialLr: the learning rate falls by a factor in each epoch.
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// factor^epochs, also between whole epochs.
class ExponentialLr final : public LrSchedule {
 public:
  explicit ExponentialLr(const plan::ExponentialLr& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  plan::ExponentialLr spec_;
};

}  // namespace leeway
