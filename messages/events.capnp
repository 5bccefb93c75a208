@0xb1f0c64e8a7d2e0b;
# Events: records of what the roles of a run did, for traces, checkers and metrics. A stage is a
# worker here.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::event_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::event");
$Cpp.visitable;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";
using Data = import "worker_shard.capnp";

# ---- shards ----

struct PullAnswered {
  # The staleness rule allows the pull.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  minClock @2 :Int64 $type(Common.clock);
  clock @3 :Int64 $type(Common.clock);  # of the worker, at this shard
}

struct PullParked {
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  minClock @2 :Int64 $type(Common.clock);
}

struct PullReleased {
  # A parked pull is answered now, because the clock of `mover` has moved, or it was removed.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  mover @2 :UInt32 $type(Common.worker);
}

struct BucketApplied {
  worker @0 :UInt32 $type(Common.worker);
  session @1 :UInt64 $type(Common.session);
  iteration @2 :Int64 $type(Common.iteration);
  bucket @3 :UInt32;  # index among the worker's buckets at this shard
  samples @4 :UInt32;  # 0: an empty push
  skipped @5 :Bool;  # the update is skipped, because a gradient of it has overflowed
}

struct BucketRepeated {
  # The shard has accepted this push before.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  bucket @2 :UInt32;
}

struct ClockMoved {
  worker @0 :UInt32 $type(Common.worker);
  clock @1 :Int64 $type(Common.clock);
}

struct PushDropped {
  # The round was closed without the worker.
  worker @0 :UInt32 $type(Common.worker);
  session @1 :UInt64 $type(Common.session);
  iteration @2 :Int64 $type(Common.iteration);
}

struct Admitted {
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);  # its first
}

struct Fenced {
  worker @0 :UInt32 $type(Common.worker);
  clock @1 :Int64 $type(Common.clock);
  partial @2 :Bool;  # the shard has applied buckets of iteration `clock`
}

struct Removed {
  worker @0 :UInt32 $type(Common.worker);
}

struct SnapshotTaken {
  iteration @0 :Int64 $type(Common.iteration);
  snapshot @1 :UInt64;
}

struct Refused {
  worker @0 :UInt32 $type(name = "WorkerId");  # index of the sender, whatever its role
  iteration @1 :Int64 $type(Common.iteration);
  reason @2 :Data.Refused.Reason;
}

struct BoundChanged {
  iteration @0 :Int64 $type(Common.iteration);  # the bound holds from here on
  staleness @1 :UInt32;
}

# ---- all roles ----

struct Malformed {
  # A message was refused because it cannot be decoded or contradicts the plan.
  iteration @0 :Int64 $type(Common.iteration);
  text @1 :Text;
}

# ---- scheduler ----
#
# Here `worker` is the first one of its pipeline. Positions are those of the epoch's permutation.

struct CheckpointWritten {
  number @0 :UInt64;
  samples @1 :UInt64;  # trained in it
}

struct LeaseGranted {
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);  # the first one that the lease fills
  epoch @2 :Int64 $type(Common.epoch);
  begin @3 :Int64 $count;
  end @4 :Int64 $count;
}

struct LeaseReturned {
  worker @0 :UInt32 $type(Common.worker);
  epoch @1 :Int64 $type(Common.epoch);
  begin @2 :Int64 $count;
  end @3 :Int64 $count;
}

struct Trained {
  worker @0 :UInt32 $type(Common.worker);
  epoch @1 :Int64 $type(Common.epoch);
  begin @2 :Int64 $count;
  end @3 :Int64 $count;
}

struct PartialPush {
  # Some shards have applied pushes of these iterations that others lack.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);  # the first
  iterations @2 :Int64 $count;
}

struct Evicted {
  worker @0 :UInt32 $type(Common.worker);
}

struct Left {
  # The worker was asked to leave and has left. May be repeated.
  worker @0 :UInt32 $type(Common.worker);  # any one of a pipeline
}

struct PrimaryLost {
  # The shard's primary has ended; its standby is ordered to take over.
  shard @0 :UInt32 $type(Common.shard);
}

struct StandbyLost {
  # The shard's standby has ended; the primary is ordered to continue without it.
  shard @0 :UInt32 $type(Common.shard);
  launch @1 :UInt32;  # of the standby
}

struct StandbyTookOver {
  # The former standby is the primary.
  shard @0 :UInt32 $type(Common.shard);
  launch @1 :UInt32;  # of the standby
}

struct StandbyInSync {
  # A new standby has the state of the shard's primary.
  shard @0 :UInt32 $type(Common.shard);
  launch @1 :UInt32;  # of the standby
}

# ---- workers ----

struct StepStarted {
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  samples @2 :Int64 $count;
  waitedNs @3 :Int64 $type(Common.duration);
  # By the worker until this moment: ready to compute, but without weights. 0 in a stage, whose
  # operations count it.
  groupIndex @4 :UInt32;
  # Place of the worker in its host group. The weights are those that its lead has pulled.
}

struct StepFinished {
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  samples @2 :Int64 $count;  # 0: none, or the iteration was dropped
}

struct StageComputed {
  # A backward in one piece emits both backwards.
  worker @0 :UInt32 $type(Common.worker);
  operation @1 :Operation;
  iteration @2 :Int64 $type(Common.iteration);
  chunk @3 :UInt32;  # of the model
  microBatch @4 :UInt32;
  pull @5 :Int64 $type(Common.iteration);  # iteration of the pull whose weights it read
  computedNs @6 :Int64 $type(Common.duration);  # 0 in the second event of a backward in one piece
  # The stage waited before the operation, of this for an activation, and for a gradient:
  waitedNs @7 :Int64 $type(Common.duration);
  waitedBeforeNs @8 :Int64 $type(Common.duration);
  waitedAfterNs @9 :Int64 $type(Common.duration);

  enum Operation {
    forward @0;
    backwardInputs @1;   # the gradient of the chunk's input
    backwardWeights @2;  # the gradients of its weights
  }
}

struct GroupGathered {
  # The lead of a host group has the gradients of all its workers, after it waited for the last one.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  forWorker @2 :UInt32 $type(Common.worker);
  waitedNs @3 :Int64 $type(Common.duration);
}

struct GradientEncoded {
  # The worker has encoded its gradient of a block for a push. Only for checkers.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  block @2 :UInt32 $type(Common.block);
  given @3 :Float64;  # checked_sum of the gradient, or of the velocity with a momentum correction
  residual @4 :Float64;  # checked_sum of the next residual
  magnitude @5 :Float64;  # sum of the absolute values that were given and encoded
}

struct Event $Cpp.namespace("leeway")
    $Cpp.method("template <class T> const T* as() const { return std::get_if<T>(this); }") {
  # `as`: null if it is another event.
  union {
    pullAnswered @0 :PullAnswered;
    pullParked @1 :PullParked;
    bucketApplied @2 :BucketApplied;
    bucketRepeated @3 :BucketRepeated;
    clockMoved @4 :ClockMoved;
    pushDropped @5 :PushDropped;
    admitted @6 :Admitted;
    fenced @7 :Fenced;
    removed @8 :Removed;
    snapshotTaken @9 :SnapshotTaken;
    refused @10 :Refused;
    boundChanged @11 :BoundChanged;
    malformed @12 :Malformed;
    leaseGranted @13 :LeaseGranted;
    leaseReturned @14 :LeaseReturned;
    trained @15 :Trained;
    partialPush @16 :PartialPush;
    evicted @17 :Evicted;
    left @18 :Left;
    stepStarted @19 :StepStarted;
    stepFinished @20 :StepFinished;
    stageComputed @21 :StageComputed;
    checkpointWritten @22 :CheckpointWritten;
    primaryLost @23 :PrimaryLost;
    standbyLost @24 :StandbyLost;
    standbyTookOver @25 :StandbyTookOver;
    standbyInSync @26 :StandbyInSync;
    gradientEncoded @27 :GradientEncoded;
    pullReleased @28 :PullReleased;
    groupGathered @29 :GroupGathered;
  }
}
