#pragma once
// Calibration: measures this machine with a plan's own model, so that a simulation can stand for
// it.
#include <functional>
#include <string>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// The world that this machine is for the plan's model, batch and shards: all actors on one node.
/// Takes some seconds, in which nothing else should use the machine; `tell` hears what is being
/// measured, if it is there. Stragglers, faults and the staleness of the plan do not matter.
Expected<plan::World> measure_world(const Plan& plan, const TrainTest& data,
                                    const std::function<void(const std::string&)>& tell = {});

/// The same with the plan's data, and writes the world into a file (.toml). Tells what it does on
/// std::cerr and the outcome on std::cout. Returns the exit code: 0 written, 1 not, 2 refused.
int calibrate(const Plan& plan, const std::string& path);

}  // namespace leeway
