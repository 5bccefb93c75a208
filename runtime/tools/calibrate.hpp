#pragma once
// Calibration: measures this machine with a plan's model, for simulations of this machine.
#include <functional>
#include <string>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Measures the world of this machine for the plan's model, batch and shards, with all actors on
/// one node. Takes some seconds, in which no other program should use the machine. `report`, if
/// given, receives the name of each measurement. Ignores stragglers, faults, staleness and stages
/// of the plan.
Expected<plan::World> measure_world(const Plan& plan, const TrainTest& data,
                                    const std::function<void(const std::string&)>& report = {});

/// The same with the plan's data; writes the world to a file (.toml). Prints progress on std::cerr
/// and the result on std::cout. Returns the exit code: 0 written, 1 not written, 2 refused.
int calibrate(const Plan& plan, const std::string& path);

}  // namespace leeway
