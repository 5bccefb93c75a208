#include "policies/schedule/constant.hpp"

namespace leeway {

double ConstantSchedule::factor(double, double) const {
  return 1;
}

}  // namespace leeway
