#pragma once
// All checkers of a simulated run. To add one, copy the smallest (rule.hpp) and list it in
// catalogue.cpp.
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "sim/checkers/checker.hpp"

namespace leeway::sim {

/// New checkers for one run, in the order in which the host calls them. compare_runs() in
/// sim/determinism.hpp checks property 9.
std::vector<std::shared_ptr<Checker>> all_checkers(const std::shared_ptr<const Job>& job);

}  // namespace leeway::sim
