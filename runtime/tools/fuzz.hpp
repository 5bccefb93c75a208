#pragma once
// Fuzzing: a search for runs of a scenario that violate a property, for the command line.
#include <cstdint>
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

struct FuzzOptions {
  std::uint64_t first = 1, last = 1000;  // seeds, both included
  unsigned threads = 0;                  // 0: one a core
  std::string folder = ".";              // where plans that fail are kept
  std::string command;                   // that runs a plan file, as told to the user
};

/// "1..2000", or a seed alone.
Status parse_seeds(const std::string& text, FuzzOptions& options);

/// Draws runs from the seeds, around the data, model, loss and optimizer of `plan`, and simulates
/// each under all checkers. Tells its progress on std::cerr and the outcome on std::cout. A run
/// that fails is made smaller and kept as a plan file. Returns the exit code: 0 none failed, 1 one
/// did, 2 refused, 130 interrupted.
int fuzz(const Plan& plan, const FuzzOptions& options);

}  // namespace leeway
