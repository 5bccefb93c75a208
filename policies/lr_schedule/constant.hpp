#pragma once
// ConstantLr: the full learning rate throughout.
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

class ConstantLr final : public LrSchedule {
 public:
  double factor(double epochs, double total_epochs) const override;
};

}  // namespace leeway
