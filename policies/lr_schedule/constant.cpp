#include "policies/lr_schedule/constant.hpp"

namespace leeway {

double ConstantLr::factor(double, double) const {
  return 1;
}

}  // namespace leeway
