@0xb16f8d3a25c9e704;
# Where the actors run: threads, or a simulated world of machines and links.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.flat;
$Cpp.stem("world");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using import "/plan/annotations.capnp".flag;
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".range;
using import "/plan/annotations.capnp".values;

struct Host $Cpp.optional {
  union {
    local @0 :Void $help("threads of this process, or nodes of a cluster");
    simulated @1 :World $flag("--simulate") $help("virtual time, in a world of machines and links");
  }
}

struct World {
  nodes @0 :Nodes $help("which actors share a node");
  cores @1 :UInt32 = 1 $range(least = 1, most = 4096)
    $help("cores per node; excess computations wait");
  speed @2 :Float64 = 50 $range(Range.gigaflops)
    $help("GFLOP/s per core, counting multiplications and additions");
  memory @3 :Float64 = 20 $range(Range.gigabytes) $help("GB/s between a core and memory");
  noise @4 :Float64 = 0.05 $range(Range.noise) $help("relative variation of a computation's time");
  latencyUs @5 :Float64 = 50 $range(Range.microseconds)
    $help("one-way latency between two nodes, in microseconds");
  localLatencyUs @6 :Float64 = 5 $range(Range.microseconds)
    $help("latency within a node, in microseconds");
  jitter @7 :Float64 = 0.2 $range(Range.jitter) $help("maximum extra latency, as a share of it");
  link @8 :Float64 = 10 $range(Range.link) $help("Gbit/s of a node's link, each way; 0: no limit");
  detectionMs @9 :Float64 = 200 $range(Range.detection)
    $help("milliseconds until watchers are notified of the end of an actor");
  costOnly @10 :Bool $flag("--gradients") $values("real or none")
    $help("compute no gradients, to study only protocol and time");
  # Threads of the nodes. With 0, only computations take time.
  messageUs @11 :Float64 $range(Range.microseconds)
    $help("core time per message, in microseconds; 0: threads are not simulated");
  timerUs @12 :Float64 $range(Range.microseconds) $help("delay of timers, in microseconds");
  sliceUs @13 :Float64 $range(Range.microseconds)
    $help("time slice of a thread while others wait for a core, in microseconds; 0: until it "
        "finishes");
  contention @14 :Float64 $range(Range.contention)
    $help("relative slowdown when all cores of the node are busy");
  cold @15 :Float64 $range(Range.cold)
    $help("relative slowdown after the thread has been idle for long");

  agents @16 :UInt32 $range(least = 0, most = 64)
    $help("node agents of a simulated cluster, on which the actors run; 0: nodes without "
        "processes");
  place @17 :Text $help("node of each actor in that cluster, as for --place");
  atLeast @22 :UInt32 $range(least = 0, most = 64)
    $help("number of these agents with which the job may start; 0: all");
  faultsFrom @23 :FaultsFrom $help("from when the times of faults in that cluster count");

  # Set by a calibration. A simulation compares them with this machine and its own plan.
  measuredOn @18 :Text $help("the processor that leeway calibrate measured");
  measuredAt @19 :Text $help("when, in UTC; empty: the world is no calibration");
  measuredPeak @20 :Float64 $range(Range.notNegative) $help("GFLOP/s that one core reached in registers");
  measuredModel @21 :Text $help("digest of the model, batch and precision");

  workersPerNode @24 :UInt32 = 1 $range(Range.workers)
    $help("adjacent workers that share a node and its cores, if nodes is each or pairs");

  enum FaultsFrom {
    start @0 $help("the actors begin");
    call @1 $help("the program calls the agents; a fault can keep the job from starting");
  }
  enum Nodes {
    each @0 $help("each worker, or workers_per_node of them, and each shard has a node; scheduler "
        "and monitor share one");
    one @1 $help("all actors share one node, as in one process");
    pairs @2 $help("each node of a worker, or of workers_per_node, also has the shard of the node's "
        "number");
  }
}
