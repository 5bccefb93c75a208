#include "policies/lr_schedule/cosine.hpp"

#include <algorithm>

#include "policies/lr_schedule/half_cosine.hpp"

namespace leeway {

double CosineLr::factor(double epochs, double total_epochs) const {
  if (spec_.period > 0) return half_cosine(1, spec_.floor, share_of_period(epochs));
  if (total_epochs <= 0) return 1;
  return half_cosine(1, spec_.floor, std::clamp(epochs / total_epochs, 0.0, 1.0));
}

double CosineLr::share_of_period(double epochs) const {
  const double periods = std::max(0.0, epochs) / spec_.period;
  const double growth = spec_.growth;
  if (growth == 1) return periods - std::floor(periods);
  // Before period n, (growth^n - 1) / (growth - 1) first periods have passed.
  const auto begin = [&](double n) { return (std::pow(growth, n) - 1) / (growth - 1); };
  double n = std::floor(std::log(periods * (growth - 1) + 1) / std::log(growth));
  if (periods >= begin(n + 1)) ++n;  // the logarithm was rounded down
  return std::clamp((periods - begin(n)) / std::pow(growth, n), 0.0, 1.0);
}

}  // namespace leeway
