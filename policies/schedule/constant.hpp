#pragma once
// ConstantSchedule: the full learning rate throughout.
#include "policies/schedule/schedule.hpp"

namespace leeway {

class ConstantSchedule final : public Schedule {
 public:
  double factor(double epochs, double total_epochs) const override;
};

}  // namespace leeway
