#pragma once
// Search: runs drawn from many seeds, on all cores, until one fails.
#include <chrono>
#include <functional>
#include <vector>

#include "sim/search/draw.hpp"
#include "sim/search/trial.hpp"

namespace leeway::sim {

struct SearchOptions {
  std::uint64_t first = 1, last = 1000;  // seeds, both included
  unsigned threads = 0;                  // 0: one a core
  DrawLimits draw;
  std::uint64_t twice_one_in = 16;  // of the seeds are run twice, and compared; 0: none
  std::uint64_t most_failures = 1;  // after so many it stops
  int shrink_trials = 300;          // runs to make a failing plan smaller by, at most
  MakeJob make_job = load_job;
};

struct Failure {
  std::uint64_t seed = 0;
  Plan drawn, shrunk;
  Trial trial;  // of the shrunk plan
};

struct SearchResult {
  std::uint64_t seeds = 0, events = 0, faults = 0;
  std::chrono::duration<double> took{};
  std::vector<Failure> failures;  // by seed
};

/// Calls `progress` every second or so, on the calling thread; false from it stops the search.
SearchResult search(const Job& base, const SearchOptions& options,
                    const std::function<bool(const SearchResult&)>& progress = {});

}  // namespace leeway::sim
