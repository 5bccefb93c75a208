#include "policies/lr_schedule/cosine.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace leeway {

double CosineLr::factor(double epochs, double total_epochs) const {
  if (total_epochs <= 0) return 1;
  const double share = std::clamp(epochs / total_epochs, 0.0, 1.0);
  return spec_.floor + (1 - spec_.floor) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

}  // namespace leeway
