#pragma once
// The command line of fuzzing: searches for runs of a scenario that violate a property.
#include <cstdint>
#include <string>

#include "core/expected.hpp"
#include "plan/plan.hpp"

namespace leeway {

struct FuzzOptions {
  std::uint64_t first = 1, last = 1000;  // range of seeds, inclusive
  unsigned threads = 0;                  // 0: one per core
  bool clusters = false;                 // only runs on simulated nodes
  std::string folder = ".";              // receives the plans of failing runs
  std::string command;                   // printed as the command that runs a plan file
};

/// "1..2000", or a single seed.
Status parse_seeds(const std::string& text, FuzzOptions& options);

/// Draws a random run per seed, with the data, model, loss and optimizer of `plan`, and simulates
/// it with all checkers. Prints progress on std::cerr and the result on std::cout. A failing run is
/// minimised and written as a plan file. Returns the exit code: 0 no failure, 1 failures, 2
/// refused, 130 interrupted.
int fuzz(const Plan& plan, const FuzzOptions& options);

}  // namespace leeway
