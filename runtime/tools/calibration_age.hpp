#pragma once
// Finds calibrations that no longer describe this machine or the plan.
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "tensor/shape.hpp"

namespace leeway {

/// A machine and a model, as a calibration records them.
struct CalibrationOrigin {
  std::string processor;
  double gigaflops = 0;  // peak of one core; 0: not measured
  std::string model;     // digest of layers, shape of a sample, loss, batch and precision
};
/// This machine, and the model of a plan for samples of this shape. Measures the peak of a core,
/// which takes a third of a second.
CalibrationOrigin origin_of(const Plan& plan, const Shape& sample);

/// Notes in the world what it is measured with, and the time.
void note_origin(plan::World& world, const CalibrationOrigin& origin);

/// Why the world of a calibration may predict wrong times here, one sentence for each reason; empty
/// for other worlds.
std::vector<std::string> calibration_notes(const plan::World& world, const CalibrationOrigin& here);

/// The same for a simulated plan. Measures the peak of a core only if the world is a calibration of
/// this kind of processor.
std::vector<std::string> calibration_notes(const Plan& plan, const Shape& sample);

}  // namespace leeway
