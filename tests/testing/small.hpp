#pragma once
// A small scenario for the tests of leeway/testing.hpp.
#include "testing.hpp"

namespace leeway::test {

/// Four workers in a world without randomness. An iteration takes about a millisecond of
/// computation, so that stragglers matter.
inline Scenario small() {
  Scenario scenario("small", "Three clusters.");
  scenario.data(clusters(3, 4, 640))
      .model({linear(8), relu(), linear(3)})
      .optimizer(sgd(0.05))
      .consistency(ssp(2))
      .workers(4)
      .shards(1)
      .batch(8)
      .epochs(2)
      .evaluate_every(0)
      .simulated({.speed = 3e-3, .noise = 0, .jitter = 0, .detection_ms = 5});
  return scenario;
}

}  // namespace leeway::test
