#pragma once
// Finds calibrations that no longer describe this machine or the plan.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace leeway {

/// Notes in the world what it was measured with: the processor and its peak, the model, the time.
void note_origin(plan::World& world, const Plan& plan);

/// This machine, and the model of a plan.
struct CalibrationOrigin {
  std::string processor;
  double gigaflops = 0;  // peak of one core
  std::string model;     // digest of layers, loss, batch and precision
};
CalibrationOrigin origin_of(const Plan& plan);

/// Why the world of a calibration may predict wrong times here, one sentence for each reason; empty
/// for other worlds.
std::vector<std::string> calibration_notes(const plan::World& world, const CalibrationOrigin& here);

/// The same for a plan. Measures the peak of a core if the world is a calibration of this kind of
/// processor, which takes a third of a second.
std::vector<std::string> calibration_notes(const Plan& plan);

}  // namespace leeway
