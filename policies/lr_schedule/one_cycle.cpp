#include "policies/lr_schedule/one_cycle.hpp"

#include <algorithm>

#include "policies/lr_schedule/half_cosine.hpp"

namespace leeway {

double OneCycleLr::factor(double epochs, double total_epochs) const {
  if (total_epochs <= 0) return 1;
  const double share = std::clamp(epochs / total_epochs, 0.0, 1.0);
  const double start = 1 / spec_.start_divisor, end = start / spec_.end_divisor;
  if (share < spec_.rise) return half_cosine(start, 1, share / spec_.rise);
  return half_cosine(1, end, (share - spec_.rise) / (1 - spec_.rise));
}

}  // namespace leeway
