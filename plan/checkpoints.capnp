@0xd0a4f36b17e8c529;
# When a run writes checkpoints, and where.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.stem("checkpoints");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using import "/plan/annotations.capnp".flag;
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".name;

struct Checkpoints $Cpp.union("every") {
  keep @0 :UInt32 = 3 $range(least = 1, most = 1000000) $flag("--keep")
    $help("number of checkpoints that are kept, the latest ones");
  directory @1 :Text $flag("--checkpoint-dir")
    $help("folder of the checkpoints; empty: in the run folder; other nodes keep copies");
  union {
    usual @2 :Void $help("every 60 seconds, without a simulation and with a run folder");
    seconds @3 :Float64 = 60 $range(Range.checkpointSeconds) $name("EverySeconds")
      $help("seconds between checkpoints");
    epochs @4 :Float64 = 1 $range(Range.checkpointEpochs) $name("EveryEpochs")
      $help("epochs between checkpoints");
    iterations @5 :UInt64 = 1000 $range(Range.checkpointIterations)
      $name("EveryIterations")
      $help("iterations between checkpoints, of all workers together");
    never @6 :Void $help("no checkpoints");
  }
}
