#pragma once
// The part of a plan that says which world a simulated run is set in; see plan.capnp.
#include <cstdint>

namespace leeway::plan {

struct World {
  enum class Nodes : std::uint8_t { each, one };
  Nodes nodes = Nodes::each;
  std::uint32_t cores = 1;
  double speed = 50, memory = 20;  // GFLOP/s, GB/s
  double noise = 0.05;
  double latency_us = 50, local_latency_us = 5;
  double jitter = 0.2;
  double link = 10;  // Gbit/s
  double detection_ms = 200;
  double message_us = 0, timer_us = 0;
  double slice_us = 0;
  double contention = 0;
  double cold = 0;
  bool cost_only = false;
  bool operator==(const World&) const = default;
};

}  // namespace leeway::plan
