#include "policies/lr_schedule/step.hpp"

#include <cmath>

namespace leeway {

double StepLr::factor(double epochs, double) const {
  if (spec_.every <= 0) return 1;
  return std::pow(spec_.factor, std::floor(epochs / spec_.every));
}

}  // namespace leeway
