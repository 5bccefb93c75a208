#include "policies/lr_schedule/warmup.hpp"

#include <algorithm>

namespace leeway {

double WarmupLr::factor(double epochs, double total_epochs) const {
  if (epochs < warmup_) return start_ + (1 - start_) * std::max(0.0, epochs / warmup_);
  return then_->factor(epochs - warmup_, std::max(0.0, total_epochs - warmup_));
}

}  // namespace leeway
