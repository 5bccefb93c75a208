#pragma once
// sweep: checks a property of a scenario for a range of seeds, and minimises the first run without
// it.
//
// RapidCheck shrinks the values of its generators. sweep() shrinks the plan of a run instead, with
// the code of `leeway fuzz`, and a program that calls it needs no other library.
#include <cstdint>
#include <functional>
#include <string>

#include "testing/simulate.hpp"

namespace leeway {

struct SweepOptions {
  std::uint64_t first = 1, last = 20;     // seeds, both included
  SimulateOptions simulate;               // of each run; its seed is ignored
  std::function<void(Plan&, Rng&)> draw;  // changes the plan of each seed; may be empty
  int shrink_trials = 100;                // limit of runs to minimise the failing plan
  std::string folder = ".";               // receives the plan of the failing run
};

/// Simulates the scenario with each seed until `property` does not hold. Then removes faults,
/// stragglers, workers, iterations and settings from the plan as long as the run keeps failing in
/// the same way. The text of the verdict has the seed, what was found, the command that repeats the
/// test with this seed only, and the file with the minimised plan.
///
/// With the environment variable LEEWAY_SEED, only that seed.
Verdict sweep(const Scenario& scenario, const SweepOptions& options,
              const std::function<Verdict(const SimulatedRun&)>& property);

}  // namespace leeway
