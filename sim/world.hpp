#pragma once
// World: the nodes and the network of a simulated run.
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "core/time.hpp"
#include "plan/plan.hpp"

namespace leeway::sim {

/// A plan's world, in the units of a simulation. The defaults describe a small cluster: one worker
/// or shard per node, 10 Gbit/s links.
struct World {
  World() = default;
  explicit World(const plan::World& world);

  /// Which actors share a node. Scheduler and monitor are always together on node 0.
  enum class Nodes : std::uint8_t {
    one_each,  // every worker, or workers_per_node of them, and every shard has its own node
    one,       // all actors share one node, like the local host
    pairs,     // each node of workers has the shard of its number
  };
  Nodes nodes = Nodes::one_each;
  std::uint32_t workers_per_node = 1;  // adjacent ones, unless all actors share one node
  std::uint32_t cores = 1;             // per node

  double flops_per_second = 50e9;  // of one core
  double bytes_per_second = 20e9;  // of one core, to and from memory
  double noise = 0.05;             // durations vary by this share, both ways

  Duration latency = microseconds(50);       // between two nodes, one way
  Duration local_latency = microseconds(5);  // within a node
  double jitter = 0.2;                       // latency grows by up to this share
  double link_bytes_per_second = 1.25e9;     // of a node, per direction; 0: no limit

  double disk_bytes_per_second = 500e6;   // of each shard, to its disk
  Duration disk_flush = milliseconds(5);  // until a written file is on the disk

  Duration detection = milliseconds(200);  // until watchers notice that an actor has ended

  // Threads of a node, like those of the local host; see sim/simulator_threads.hpp. If `message` is
  // 0 there are no threads: messages are handled on arrival, and only computations need cores.
  Duration message;       // core time to handle a message
  Duration timer;         // lateness of timers
  Duration slice;         // core time of a thread while others wait; 0: no preemption
  double contention = 0;  // slowdown if all cores are busy, as a share
  double cold = 0;        // slowdown after a long rest, as a share; see sim/cold_cache_penalty.hpp
  bool has_threads() const { return message > Duration{}; }
};

/// Whether the plan runs on simulated node agents; see sim/cluster.
inline bool has_agents(const Plan& plan) {
  return plan.simulated && plan.simulated->agents > 0;
}

/// Parses comma-separated settings: `latency=200us,link=1,nodes=one,cores=2`. Other settings keep
/// their values of `base`. Names are those of plan::World without the unit: `latency` for
/// latency_us. A leading `@FILE` reads a file of `leeway calibrate`; later settings override it.
/// The error names valid values.
Expected<plan::World> parse_world(const std::string& text, plan::World base = {});
/// The names that parse_world knows.
std::vector<std::string> world_settings();

}  // namespace leeway::sim
