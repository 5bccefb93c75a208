#pragma once
// Property 9: two simulated runs of one seed take the same steps. If they do not, the first step
// that differs, in words.
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

/// Makes a fresh simulator with these options of its trace, runs it to its end, and returns its
/// trace.
using TracedRun = std::function<Trace(const Trace::Options&)>;

/// Runs it twice, and if the traces differ, contents of messages included, twice or a few times
/// more, to tell the first step that differs. Nothing when all is the same. Takes 32 bytes of
/// memory a step.
std::optional<Difference> compare_runs(const TracedRun& run);

}  // namespace leeway::sim
