#pragma once
// CosineSchedule: the learning rate falls along half a cosine (Loshchilov, Hutter, ICLR 2017,
// equation 5, without restarts).
#include "policies/schedule/schedule.hpp"

namespace leeway {

/// From 1 at the start to `floor` at the last epoch, and `floor` beyond. 1 while the planned length
/// is unknown.
class CosineSchedule final : public Schedule {
 public:
  explicit CosineSchedule(const plan::Cosine& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  plan::Cosine spec_;
};

}  // namespace leeway
