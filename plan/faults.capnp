@0xaa59e37c06d4f182;
# Stragglers, and faults to inject.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.flat;
$Cpp.stem("faults");
$Cpp.include("core/address.hpp");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".notEmpty;
using import "/plan/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".initially;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".name;
using import "/messages/generator/annotations.capnp".type;

const actor :Cpp.Type = (name = "Address");

struct Straggler {              # several on one worker: factors multiply, pauses add
  worker @0 :UInt32 $help("worker that is slowed down");
  all @1 :Bool $help("slow every worker instead, each by separate random numbers");
  union {
    factor @2 :Float64 = 4 $range(Range.slowdown) $name("ConstantFactor")
      $help("slowdown factor of every iteration");
    bursts @3 :Bursts $help("slow in random bursts");
    pareto @4 :Pareto $help("a factor drawn for each iteration, above x with probability x^-alpha");
    pauses @5 :Pauses $help("pauses at regular intervals, like a garbage collector");
    decay @6 :Decay $help("slows down gradually and stays slow");
    sharing @7 :Sharing $help("alternates between slow and normal, like a noisy neighbour");
    trace @8 :Trace $help("factors from a file");
    repeated @9 :Repeated $help("factors from a list");
    fixedDelay @10 :FixedDelay $help("each iteration takes some time longer");
    custom @11 :Custom $name("CustomStraggler") $help("factors from a function of the program");
  }
  together @12 :List(UInt32) $limit("kMaxWorkers")
    $help("slow these workers instead, all by the same random numbers, like a rack");
  from :union $type(name = "plan::StragglerStart") $help("when the worker becomes slow") {
    share @13 :Float64 $range(Range.startShare)
      $help("after this share of the run's epochs or iterations");
    iteration @14 :Int64 $range(Range.iteration) $help("in this iteration of the worker");
  }
  struct Bursts {
    factor @0 :Float64 = 4 $range(Range.slowdown) $help("slowdown factor in a burst");
    share @1 :Float64 = 0.2 $range(Range.shareOfIterations)
      $help("share of the iterations that are slow");
    length @2 :UInt32 = 50 $range(Range.iterations) $help("iterations per burst, on average");
  }
  struct Pareto {
    alpha @0 :Float64 = 1.5 $range(Range.tail) $help("exponent: the smaller, the heavier the tail");
    cap @1 :Float64 = 100 $range(Range.slowdown) $help("largest factor");
  }
  struct Pauses $Cpp.union("every") {
    lengthMs @0 :Float64 = 200 $range(Range.pause) $help("length of a pause, in milliseconds");
    union {
      iterations @1 :UInt32 = 50 $range(Range.iterations) $help("iterations from pause to pause");
      seconds @2 :Float64 = 1 $range(Range.pauseEvery)
        $help("seconds from pause to pause, by the host's clock");
    }
  }
  struct Decay {
    factor @0 :Float64 = 4 $range(Range.slowdown) $help("final slowdown factor");
    iterations @1 :UInt32 = 1000 $range(Range.iterations) $help("iterations until the full factor");
  }
  struct Sharing {
    factor @0 :Float64 = 4 $range(Range.slowdown) $help("slowdown factor while it is slow");
    on @1 :UInt32 = 100 $range(Range.iterations) $help("iterations in which it is slow");
    off @2 :UInt32 = 300 $range(Range.iterations) $help("iterations in which it is not");
    phase @3 :Int64 = -1 $range(Range.phase)
      $help("iterations of the cycle that are over at the start; -1: drawn from the seed");
  }
  struct Trace {
    file @0 :Text $notEmpty("the path of the file")
      $help("file with one factor per line; repeats after the last line");
  }
  struct Repeated {
    factors @0 :List(Float64) $limit("65536")
      $help("one factor per iteration; repeats after the last one");
  }
  struct FixedDelay {
    delayMs @0 :Float64 = 5 $range(Range.delay) $help("milliseconds added to each iteration");
  }
  struct Custom {
    function @0 :Text $notEmpty("the name that the program gave to register_straggler")
      $help("name of the function, which the program registers");
  }
}

struct Fault {
  actor @0 :Text = "worker0" $type(.actor) $initially("RoleKind::worker, 0")
    $help("worker2, shard0, scheduler or, of a simulated cluster, node1");
  at :union $type(name = "plan::FaultTime") $help("when the fault begins") {
    iteration @1 :Int64 $range(Range.iteration)
      $help("when the actor begins it; for shards and the scheduler, when any worker does");
    seconds @2 :Float64 $range(least = 0, most = 31536000, give = "0 or more, up to a year")
      $help("seconds, by the host's clock");
  }
  spread @3 :Float64 $range(least = 0, most = 1e9, give = "0 or more")
    $help("maximum delay of the beginning in iterations or seconds, drawn from the seed");
  union {
    throws @4 :Void $help("the computation throws, and the iteration is not pushed");
    killed @5 :Void
      $help("ends after the first push of the iteration, a partial push if there are more");
    crash @6 :Crash $help("ends at once");
    joins @7 :Void $help("joins the run at this time");
    freeze @8 :Lasting $name("Freeze") $help("does nothing for a while, like a stopped process");
    slow @9 :Slow $help("handles every message with a delay");
    breaks @10 :Link $name("Breaks")
      $help("the connection to a peer breaks and is re-established; messages in flight are lost");
    delay @11 :Delay $help("messages to and from a peer take longer");
    silence @12 :Link $name("Silence")
      $help("messages to the peer are lost; messages from it arrive");
    partition @13 :Partition $help("no message enters or leaves its side");
    slowLink @14 :SlowLink $help("the link of its node is slower");
    clockStops @15 :Lasting $name("ClockStops") $help("the clock of its node stops");
    leaves @16 :Void $help("finishes its iteration and leaves the run");
    competes @17 :Lasting $name("Competes")
      $help("another program calls the nodes of a simulated cluster, and gives up after a while");
  }
  struct Crash {
    back @0 :Float64 $range(Range.restart) $help("seconds until it is restarted; 0: never");
  }
  struct Lasting {
    seconds @0 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Slow {
    delayMs @0 :Float64 = 5 $range(Range.delay) $help("milliseconds added to each message");
    seconds @1 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Link {
    peer @0 :Text = "shard0" $type(.actor)
      $initially("RoleKind::shard, 0") $help("actor at the other end");
    seconds @1 :Float64 = 0.1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Delay {
    peer @0 :Text = "shard0" $type(.actor)
      $initially("RoleKind::shard, 0") $help("actor at the other end");
    delayMs @1 :Float64 = 5 $range(Range.delay) $help("milliseconds added to each message");
    seconds @2 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Partition {
    with @0 :List(Text) $type(.actor) $limit("kMaxWorkers") $help("actors on the same side");
    seconds @1 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct SlowLink {
    factor @0 :Float64 = 10 $range(least = 1, most = 1e6, give = "a factor from 1 to 1000000")
      $help("slowdown factor");
    seconds @1 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
}
