#pragma once
// The command line of the crash atlas: loses each process of a run after each of its messages.
#include <cstdint>

#include "plan/plan.hpp"

namespace leeway {

struct AtlasOptions {
  std::uint64_t second = 2000;  // runs with a second loss during the recovery
  std::uint64_t seed = 1;       // of the first of them
  unsigned threads = 0;         // 0: one per core
};

/// Prints a table of all losses on std::cout, and progress on std::cerr. Returns the exit code: 0
/// nothing was lost, 1 a run failed, 2 refused, 130 interrupted.
int crash_atlas(const Plan& plan, const AtlasOptions& options);

}  // namespace leeway
