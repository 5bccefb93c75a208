#include "runtime/tools/calibration_age.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "checkpoint/digest.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "kernels/peak.hpp"
#include "monitoring/format.hpp"

namespace leeway {
namespace {

/// Shared machines change their speed by less from one minute to the next.
constexpr double kTolerance = 0.25;

/// Of the settings that decide how fast a worker computes.
std::string digest_of_model(const Plan& plan, const Shape& sample) {
  const auto json = nlohmann::json::parse(to_json(plan));
  std::string text = concat(sample);
  for (const char* setting : {"model", "loss", "batch", "micro_batches", "precision"})
    if (const auto found = json.find(setting); found != json.end()) text += found->dump();
  return checkpoint::digest_of(std::as_bytes(std::span(text)));
}

/// This kind of machine, without its peak.
CalibrationOrigin unmeasured(const Plan& plan, const Shape& sample) {
  const std::string processor = processor_name();
  return {processor.empty() ? "an unknown processor" : processor, 0, digest_of_model(plan, sample)};
}

double peak_gigaflops() {
  return std::round(kernels::measure_peak().flops * 1e-8) / 10;
}

}  // namespace

CalibrationOrigin origin_of(const Plan& plan, const Shape& sample) {
  CalibrationOrigin origin = unmeasured(plan, sample);
  origin.gigaflops = peak_gigaflops();
  return origin;
}

void note_origin(plan::World& world, const CalibrationOrigin& origin) {
  world.measured_on = origin.processor;
  world.measured_at = utc_now();
  world.measured_peak = origin.gigaflops;
  world.measured_model = origin.model;
}

std::vector<std::string> calibration_notes(const plan::World& world,
                                           const CalibrationOrigin& here) {
  if (world.measured_at.empty()) return {};
  const std::string calibration = concat("the calibration of ", world.measured_at);
  std::vector<std::string> notes;
  if (world.measured_on != here.processor)
    notes.push_back(concat(calibration, " describes a machine with ", world.measured_on,
                           "; this one has ", here.processor));
  const double change = here.gigaflops / world.measured_peak - 1;
  if (world.measured_on == here.processor && !(std::abs(change) <= kTolerance))
    notes.push_back(concat(calibration, " is out of date, or other programs run: a core reaches ",
                           fixed(here.gigaflops, 0), " GFLOP/s now, and reached ",
                           fixed(world.measured_peak, 0),
                           " then; calibrate again while nothing else runs"));
  if (world.measured_model != here.model)
    notes.push_back(concat(calibration,
                           " was made with another model, batch or precision, whose speed may "
                           "differ; calibrate with this plan"));
  return notes;
}

std::vector<std::string> calibration_notes(const Plan& plan, const Shape& sample) {
  if (!plan.simulated || plan.simulated->measured_at.empty()) return {};
  CalibrationOrigin here = unmeasured(plan, sample);
  if (here.processor == plan.simulated->measured_on) here.gigaflops = peak_gigaflops();
  return calibration_notes(*plan.simulated, here);
}

}  // namespace leeway
