#pragma once
// Property 9: two simulated runs with the same seed take the same steps. Otherwise compare_runs()
// describes the first step that differs.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/trace.hpp"

namespace leeway::sim {

struct Difference {
  std::uint64_t step = 0;     // counted from 0
  std::string first, second;  // what the two runs did in it
};

/// Runs a new simulator with these trace options to its end, and returns its trace.
using TracedRun = std::function<Trace(const Trace::Options&)>;

/// Runs twice and compares the traces, including message contents. If they differ, repeats both
/// runs up to three times to describe the first different step. Empty if the runs agree. Takes 32
/// bytes of memory per step.
std::optional<Difference> compare_runs(const TracedRun& run);

}  // namespace leeway::sim
