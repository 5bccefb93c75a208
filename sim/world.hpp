#pragma once
// World: the machines and the network that a simulated run is set in.
#include <cstdint>
#include <string>
#include <vector>

#include "core/expected.hpp"
#include "core/time.hpp"
#include "plan/plan.hpp"

namespace leeway::sim {

/// A plan's world, in the units that a simulation counts in. Figures are those of a small cluster:
/// one worker or shard a node, ten-gigabit links.
struct World {
  World() = default;
  explicit World(const plan::World& world);

  /// Which actors share a node. Scheduler and monitor are always together on node 0.
  enum class Nodes : std::uint8_t {
    one_each,  // every worker and every shard has a node of its own
    one,       // all actors share one node, like the local host
  };
  Nodes nodes = Nodes::one_each;
  std::uint32_t cores = 1;  // of each node; computations beyond wait for one

  double flops_per_second = 50e9;  // of one core, multiplications and additions
  double bytes_per_second = 20e9;  // that one core moves to and from memory
  double noise = 0.05;             // a computation takes 1 - noise to 1 + noise times its time

  Duration latency = microseconds(50);       // of a message between two nodes, one way
  Duration local_latency = microseconds(5);  // within a node
  double jitter = 0.2;                       // latency varies by this share of itself, upwards
  double link_bytes_per_second = 1.25e9;     // of each node's link, each way; 0: no limit

  Duration detection = milliseconds(200);  // until watchers are told that an actor has ended

  // Threads of a node, as those of the local host; see sim/simulator_threads.hpp. Actors that take
  // no time for a message have none: they handle all that comes at once, and computations alone
  // take cores.
  Duration message;       // of a core, for each
  Duration timer;         // that a timer rings late
  Duration slice;         // that a thread keeps a core when others wait; none: until it has done
  double contention = 0;  // all takes 1 + contention times as long when all cores are busy
  double cold = 0;        // after a long rest all takes 1 + cold times as long; see sim/penalty.hpp
  bool has_threads() const { return message > Duration{}; }
};

/// Reads settings with commas between, `latency=200us,link=1,nodes=one,cores=2`. The other settings
/// keep their values of `base`. Names are those of plan::World without the unit: `latency` for
/// latency_us. `@FILE` in front reads a file that `leeway calibrate` has written; the settings
/// behind it change it. The error says what would be right.
Expected<plan::World> parse_world(const std::string& text, plan::World base = {});
/// The names that parse_world knows.
std::vector<std::string> world_settings();

}  // namespace leeway::sim
