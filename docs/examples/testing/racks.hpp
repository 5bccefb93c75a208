#pragma once
// The scenario under test: four workers, of which one is slow.
#include <leeway/leeway.hpp>

/// An iteration computes for about a millisecond, so that a straggler matters.
inline leeway::Scenario racks() {
  using namespace leeway;
  Scenario scenario("racks", "Tells three clusters apart with a slow worker.");
  scenario.data(clusters(3, 4, 640))
      .model({linear(8), relu(), linear(3)})
      .optimizer(sgd(0.05))
      .consistency(ssp(2))
      .workers(4)
      .shards(1)
      .batch(8)
      .epochs(2)
      .straggler(slow(3, 4))
      .simulated({.speed = 3e-3});
  return scenario;
}
