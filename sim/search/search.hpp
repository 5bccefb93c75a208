#pragma once
// Search: simulates random runs of many seeds on all cores until one fails.
#include <chrono>
#include <functional>
#include <vector>

#include "sim/search/draw.hpp"
#include "sim/search/trial.hpp"

namespace leeway::sim {

struct SearchOptions {
  std::uint64_t first = 1, last = 1000;  // seeds, both included
  unsigned threads = 0;                  // 0: one per core
  DrawLimits draw;
  std::uint64_t twice_one_in = 16;  // one seed in this many runs twice and is compared; 0: none
  std::uint64_t crash_one_in = 16;  // one seed in this many is a crash trial; 0: none
  std::uint64_t loss_one_in = 8;    // one seed in this many is a loss trial; 0: none
  std::uint64_t most_failures = 1;  // the search stops at this number
  int shrink_trials = 300;          // limit of runs to minimise a failing plan
  MakeJob make_job = load_job;
};

/// What a seed is tried with.
enum class TrialKind : std::uint8_t { once, twice, crashes, losses };

struct Failure {
  std::uint64_t seed = 0;
  Plan drawn, shrunk;
  Trial trial;  // of the shrunk plan
  TrialKind kind = TrialKind::once;
};

struct SearchResult {
  std::uint64_t seeds = 0, events = 0, faults = 0, crashes = 0, losses = 0, cut_short = 0;
  std::chrono::duration<double> took{};
  std::vector<Failure> failures;  // by seed
};

/// Calls `progress` about once per second on the calling thread. If it returns false, the search
/// stops.
SearchResult search(const Job& base, const SearchOptions& options,
                    const std::function<bool(const SearchResult&)>& progress = {});

}  // namespace leeway::sim
