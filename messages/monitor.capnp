@0xc92e60d5a7f81b05;
# Reports of the actors to the monitor, and evaluations of the monitor for the scheduler.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
$Cpp.include("core/ids.hpp");
$Cpp.include("core/time.hpp");
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".name;
using import "/messages/generator/annotations.capnp".type;
using Common = import "/messages/common.capnp";  # only its constants: the header stays light

struct WorkerReport {
  # worker -> monitor. Sums over the iterations finished since the last report.
  iterations @0 :UInt64;
  samples @1 :UInt64;
  correct @2 :UInt64;  # correct argmax predictions
  lossSum @3 :Float64;  # over samples
  computeNs @4 :Int64 $type(Common.duration);
  waitNs @5 :Int64 $type(Common.duration);  # ready to compute, but without weights
  clock @6 :Int64 $type(Common.clock);
  epoch @7 :Int64 $type(Common.epoch);
  waitBeforeNs @8 :Int64 $type(Common.duration);
  # Part of waitNs: a stage waits for samples or an activation of the stage before.
  waitAfterNs @9 :Int64 $type(Common.duration);
  # Part of waitNs: a stage waits for a gradient of the next stage.
  memoryBytes @10 :UInt64;  # maximum that a stage has kept between two operations
  outdated @11 :UInt64;  # iterations computed again, because their weights had become too old
  stageBytes @12 :UInt64;  # activations and their gradients that it has sent to other stages
  plainStageBytes @13 :UInt64;  # the same without a codec
  groupWaits @14 :List(Wait) $limit("kMaxWaits");
  # The lead of a host group: part of waitNs, for the gradients of its other workers.
}

struct Wait {
  # `worker` waited for `forWorker`: for a push, an admission or a removal, which permitted its
  # pull, or for a gradient of its host group.
  worker @0 :UInt32 $type(Common.worker);
  forWorker @1 :UInt32 $type(Common.worker);
  ns @2 :Int64 $type(Common.duration) $name("time");
  count @3 :UInt64;
}

struct ShardReport {
  # shard -> monitor. Totals since the run began.
  minClock @0 :Int64 $type(Common.clock);
  maxClock @1 :Int64 $type(Common.clock);
  maxClockGap @2 :Int64 $count;  # largest clock - min_clock seen at this shard
  parkedNow @3 :UInt32;
  parkedPulls @4 :UInt64;
  pulls @5 :UInt64;
  pushes @6 :UInt64;
  repeats @7 :UInt64;
  refused @8 :UInt64;
  malformed @9 :UInt64;
  lags @10 :List(UInt64) $limit("kLagBins");
  # Pushes by version lag 0, 1, 2, ...; the last bin counts all larger ones.
  waits @11 :List(Wait) $limit("kMaxWaits");
  pushBytes @12 :UInt64;  # of gradients in messages
  plainPushBytes @13 :UInt64;  # the same without a codec
  pullBytes @14 :UInt64;  # of weights
  plainPullBytes @15 :UInt64;
  keptBytes @16 :UInt64;  # the most old weights that were kept for a delay policy
  lossScale @17 :Float32;  # of the newest iteration under fp16; 0: none
  skippedUpdates @18 :UInt64;  # after an overflow
}

struct SchedulerReport {
  # scheduler -> monitor.
  epoch @0 :Int64 $type(Common.epoch);  # of the newest lease
  samplesTrained @1 :UInt64;  # each counted once
  partialPushes @2 :UInt64;
  liveWorkers @3 :UInt32;
  staleness @4 :UInt32;  # if the bound moves: the last announced one
}

struct Evicted {
  # scheduler -> monitor.
  worker @0 :UInt32 $type(Common.worker);
  reason @1 :Text;
  returnedSamples @2 :UInt64;
  partial @3 :Bool;
  ended @4 :UInt32 $type(Common.worker);  # itself, or the stage of its pipeline that has ended
  rejoined @5 :Bool;  # known only because it joins again: its host may know the reason
}

struct RunEnded {
  # scheduler -> monitor. Sent before the shards' final state.
  reason @0 :Reason;
  text @1 :Text;  # for a failure: what happened and what to do
  samplesTrained @2 :UInt64;
  partialPushes @3 :UInt64;
  droppedPushes @4 :UInt64;  # their rounds closed without them; their samples were leased again
  lostResiduals @5 :UInt64;  # processes of workers that ended with what their encodings had lost

  enum Reason { finished @0; interrupted @1; targetReached @2; failed @3; }
}

struct Evaluated {
  # monitor -> scheduler. Results of a snapshot on the test set.
  snapshot @0 :UInt64;
  loss @1 :Float64;
  accuracy @2 :Float64;  # 0..1; 0 without classes
}

struct Checkpointed {
  # scheduler -> monitor. A checkpoint is complete, or could not be written.
  number @0 :UInt64;
  samplesTrained @1 :UInt64;  # in the checkpoint
  bytes @2 :UInt64;  # of all its files
  error @3 :Text;  # empty: complete
}

struct ReplicasChanged {
  # scheduler -> monitor. A replica of the shard was lost, or has another part.
  shard @0 :UInt32 $type(Common.shard);
  change @1 :Change;
  reason @2 :Text;  # of a loss

  enum Change {
    shardLost @0;    # the last replica was lost, with its part of the final weights
    primaryLost @1;  # the standby is ordered to take over
    tookOver @2;     # the standby is the primary
    standbyLost @3;  # the primary is ordered to continue without it
    inSync @4;       # a new standby has the state
  }
}

struct BoundMoved {
  # scheduler -> monitor. The scheduler has announced another staleness bound.
  before @0 :UInt32;
  staleness @1 :UInt32;
  lostPercent @2 :UInt32;
  # Share of the workers' time, since the last decision, for which they waited for each other.
}

struct Interrupt {
  # host -> scheduler. The user asked the run to stop.
}
