#pragma once
// CosineLr: the learning rate falls along half a cosine, once or again and again (Loshchilov,
// Hutter, ICLR 2017, equation 5).
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// From 1 at the start to `floor` at the last epoch, and `floor` beyond. 1 while the planned length
/// is unknown. With a period, from 1 to `floor` in each period, whatever the planned length; each
/// period is `growth` times as long as the one before.
class CosineLr final : public LrSchedule {
 public:
  explicit CosineLr(const plan::Cosine& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  double share_of_period(double epochs) const;

  plan::Cosine spec_;
};

}  // namespace leeway
