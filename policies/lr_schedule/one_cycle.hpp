#pragma once
// OneCycleLr: the learning rate rises to its full value and falls far below the start (Smith and
// Topin, "Super-Convergence", 2017).
#include "policies/lr_schedule/lr_schedule.hpp"

namespace leeway {

/// Along half a cosine from 1 / start_divisor to 1 in the first `rise` of the run, and along
/// another to 1 / (start_divisor * end_divisor) at the last epoch. 1 while the planned length is
/// unknown.
///
/// PyTorch's OneCycleLR with two phases counts steps and has its peak at step pct_start * total - 1
/// of total - 1, so `rise` is the quotient of the two. Momentum stays as it is.
class OneCycleLr final : public LrSchedule {
 public:
  explicit OneCycleLr(const plan::OneCycle& spec) : spec_(spec) {}
  double factor(double epochs, double total_epochs) const override;

 private:
  plan::OneCycle spec_;
};

}  // namespace leeway
