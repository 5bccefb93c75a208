#pragma once
// LinearLr: the learning rate falls along a line.
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// From 1 at the start to `floor` at the last epoch, and `floor` beyond. 1 while the planned length
/// is unknown.
class LinearLr final : public LrSchedule {
 public:
  explicit LinearLr(const plan::LinearLr& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  plan::LinearLr spec_;
};

}  // namespace leeway
