#pragma once
// The simulated worlds of studies that compare how workers keep together.
#include <leeway/leeway.hpp>

#include <string>

#include "study.hpp"

namespace leeway::study {

/// A world: its names and its changes to the plan.
struct SimulatedWorld {
  std::string name;
  std::string short_name;  // for the head of a column
  void (*add)(Plan& plan);
};

/// The worker that is slow in worlds with one slow worker.
inline std::uint32_t last_worker(const Plan& plan) {
  return plan.workers - 1;
}

inline const SimulatedWorld kWorlds[] = {
    {"equal workers", "equal", [](Plan&) {}},
    {"one worker slow in bursts", "bursts",
     [](Plan& plan) { plan.stragglers.push_back(slow_in_bursts(last_worker(plan), 5, 0.25, 20)); }},
    {"one worker always 4 times as slow", "always slow",
     [](Plan& plan) { plan.stragglers.push_back(slow(last_worker(plan), 4)); }},
    {"a heavy tail for all", "heavy tail",
     [](Plan& plan) { plan.stragglers.push_back(slow_by_pareto(all_workers, 1.5, 20)); }},
    {"a slow network", "slow network", [](Plan& plan) {
       plan.simulated->link /= 5;
       plan.simulated->latency_us *= 20;
       plan.simulated->jitter = 1;
     }}};

/// Eight workers that learn Fashion-MNIST with a 784-64-10 network in these worlds. Only simulates.
inline Scenario& in_worlds(Scenario& scenario) {
  return scenario.decides(kOfPipelines)
      .decides(kOfSingleRuns)
      .data(fashion_mnist())
      .model(mlp({64}, 10))
      .loss(softmax_cross_entropy())
      .workers(8)
      .shards(2)
      .batch(32)
      .lease_size(64)  // small, because an evaluation waits for the end of the current leases
      .evaluate_every(0.05)
      .epochs(2)
      .simulated({.cores = 4, .speed = 5});
}

}  // namespace leeway::study
