#pragma once
// CosineLr: the learning rate falls along half a cosine (Loshchilov, Hutter, ICLR 2017,
// equation 5, without restarts).
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// From 1 at the start to `floor` at the last epoch, and `floor` beyond. 1 while the planned length
/// is unknown.
class CosineLr final : public LrSchedule {
 public:
  explicit CosineLr(const plan::Cosine& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  plan::Cosine spec_;
};

}  // namespace leeway
