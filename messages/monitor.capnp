@0xc92e60d5a7f81b05;
# What the actors tell the monitor, and what it tells the scheduler.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");

struct WorkerReport {
  # worker -> monitor. Sums over the iterations finished since the last report.
  iterations @0 :UInt64;
  samples @1 :UInt64;
  correct @2 :UInt64;           # labels that were told
  lossSum @3 :Float64;          # sum over samples
  computeNs @4 :Int64;
  waitNs @5 :Int64;             # ready to compute, but without weights
  clock @6 :Int64;
  epoch @7 :Int64;
  # Of a stage, parts of waitNs:
  waitBeforeNs @8 :Int64;       # for samples or an activation of the stage before
  waitAfterNs @9 :Int64;        # for a gradient of the stage after
  memoryBytes @10 :UInt64;       # of a stage: the most that it has held so far between two operations
}

struct ShardReport {
  # shard -> monitor. Totals since the run began.
  minClock @0 :Int64;
  maxClock @1 :Int64;
  maxClockGap @2 :Int64;        # largest clock - min_clock ever seen here
  parkedNow @3 :UInt32;
  parkedPulls @4 :UInt64;
  pulls @5 :UInt64;
  pushes @6 :UInt64;
  repeats @7 :UInt64;
  refused @8 :UInt64;
  malformed @9 :UInt64;
  lags @10 :List(UInt64);       # pushes by version lag 0, 1, 2, ...; the last bin counts all larger ones
  waits @11 :List(Wait);        # who waited for whom

  struct Wait {
    worker @0 :UInt32;
    forWorker @1 :UInt32;       # the one whose push, admission or removal let the pull through
    ns @2 :Int64;
    count @3 :UInt64;
  }
}

struct SchedulerReport {
  # scheduler -> monitor.
  epoch @0 :Int64;              # of the newest lease
  samplesTrained @1 :UInt64;    # each counted once
  partialPushes @2 :UInt64;
  liveWorkers @3 :UInt32;
  staleness @4 :UInt32;         # under adaptive: the bound that was announced last
}

struct Evicted {
  # scheduler -> monitor.
  worker @0 :UInt32;
  reason @1 :Text;
  returnedSamples @2 :UInt64;
  partial @3 :Bool;
}

struct RunEnded {
  # scheduler -> monitor. Sent before the shards' final state.
  reason @0 :Reason;
  text @1 :Text;                # what happened and what to do, for a failure
  samplesTrained @2 :UInt64;
  partialPushes @3 :UInt64;
  droppedPushes @4 :UInt64;        # parts of rounds that were closed without them; their samples were leased again

  enum Reason { finished @0; interrupted @1; targetReached @2; failed @3; }
}

struct Evaluated {
  # monitor -> scheduler. The test set's verdict on a cut.
  snapshot @0 :UInt64;
  loss @1 :Float64;
  accuracy @2 :Float64;         # 0..1; 0 without classes
}

struct Interrupt {
  # host -> scheduler. Somebody asked the run to stop.
}
