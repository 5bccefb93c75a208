#include "policies/lr_schedule/linear.hpp"

#include <algorithm>

namespace leeway {

double LinearLr::factor(double epochs, double total_epochs) const {
  if (total_epochs <= 0) return 1;
  return 1 + (spec_.floor - 1) * std::clamp(epochs / total_epochs, 0.0, 1.0);
}

}  // namespace leeway
