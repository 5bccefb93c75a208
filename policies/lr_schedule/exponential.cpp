#include "policies/lr_schedule/exponential.hpp"

#include <cmath>

namespace leeway {

double ExponentialLr::factor(double epochs, double) const {
  return std::pow(spec_.factor, epochs);
}

}  // namespace leeway
