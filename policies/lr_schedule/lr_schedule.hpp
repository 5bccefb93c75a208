#pragma once
// LrSchedule: the learning rate as a function of training progress.
#include <memory>

#include "plan/plan.hpp"

namespace leeway {

class LrSchedule {
 public:
  virtual ~LrSchedule() = default;
  /// Factor on the full learning rate after `epochs` of training; `total_epochs` is the planned
  /// length (0: unknown).
  virtual double factor(double epochs, double total_epochs) const = 0;
};

/// The schedule that the plan names, with its linear warm-up.
std::unique_ptr<LrSchedule> make_lr_schedule(const plan::LrSchedule& spec);

}  // namespace leeway
