#pragma once
// All checkers: those that a simulated run is watched by. To add one, copy the smallest, and list
// it in catalogue.cpp.
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// Fresh ones, for one run, in the order in which they are to be told. Property 7 has none as long
/// as gradients travel whole; property 9 is compare_runs() in sim/determinism.hpp.
std::vector<std::shared_ptr<Checker>> all_checkers(const std::shared_ptr<const Job>& job);

}  // namespace leeway::sim
