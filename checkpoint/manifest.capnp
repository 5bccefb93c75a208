@0xe1b5c08f42d7936a;
# The manifest of a checkpoint: the state of a run, except its tensors, and the digests of all files.
#
# It is written last, as JSON, so that a checkpoint with a manifest is complete. A reader refuses a
# manifest of another format and contents that it does not know.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::checkpoint::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::checkpoint");
$Cpp.stem("values");
$Cpp.include("core/expected.hpp");
$Cpp.include("core/ids.hpp");
$Cpp.include("messages/scheduler_shard.hpp");
$Cpp.support("checkpoint/wire.hpp");
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".finite;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".type;
using Common = import "/messages/common.capnp";  # only its constants
using Control = import "/messages/scheduler_shard.capnp";

struct Manifest {
  format @0 :UInt32;  # kFormat of checkpoint/manifest.hpp
  contents @1 :List(Text) $limit("kMaxContents");  # "weights", "optimizer"
  leeway @2 :Text;  # version of the program that wrote it
  written @3 :Text;  # UTC, as 2026-11-23T08:53:27Z
  run @4 :Text;  # random name of the run, the same in all its checkpoints
  number @5 :UInt64;  # of this checkpoint, counted over the whole life of the run
  files @6 :List(Control.StoredFile) $limit("kMaxCheckpointFiles");
  blocks @7 :List(BlockState) $limit("kMaxBlocks");
  scheduler @8 :Scheduler;
  epochSamples @9 :Int64 $count;  # training samples of the data set
  dataChecksum @10 :UInt64;  # of the data set; 0: unknown
  lacksResiduals @11 :Bool;  # workers had residuals that their pushes did not carry
  lossScale @12 :Float32 $range(least = "0", most = "kMostLossScale");  # under fp16; 0: none
  lossScaleSince @13 :Int64 $type(Common.iteration);  # its last change
}

struct BlockState {
  # Rows of parameters that were updated together.
  slices @0 :List(Slice) $limit("kMaxBlockSlices");
  version @1 :Int64 $type(Common.version);
  progress @2 :Float64 $finite;  # sum of the weights of the pushes applied
  samples @3 :Int64 $count;

  struct Slice {
    parameter @0 :Text;
    firstRow @1 :Int64 $count;
    rows @2 :Int64 $count;
  }
}

struct Scheduler {
  # The scheduler's state at the snapshot.
  pipelines @0 :List(Int64) $type(Common.iteration) $limit("kMaxWorkers");
  # By pipeline: the iterations below are in the snapshot.
  supply @1 :Supply;
  partialPushes @2 :UInt64;
  droppedPushes @3 :UInt64;
  evaluatedAt @4 :Float64 $finite;  # samples leased when the last complete evaluation was due
  bound @5 :Bound;
  paces @6 :List(Pace) $limit("kMaxWorkers");  # empty unless balanced by speed
}

struct Supply {
  # The samples that are not trained: the returned ones, and all from `fresh` on.
  fresh @0 :Int64 $count;  # over all epochs
  returned @1 :List(ReturnedRange) $limit("kMaxReturnedRanges");
  iterations @2 :UInt64;  # trained, of all pipelines
  nextLease @3 :UInt64;
  freshOfParts @4 :List(Int64) $limit("kMaxWorkers");  # of workers with samples of their own

  struct ReturnedRange {
    epoch @0 :Int64 $type(Common.epoch);
    begin @1 :Int64 $count;
    end @2 :Int64 $count;
  }
}

struct Bound {
  # State of a moving staleness bound.
  staleness @0 :UInt32;
  patience @1 :Int64 $count;
  quiet @2 :Int64 $count;
  onTrial @3 :Bool;
}

struct Pace {
  # Pace of a pipeline, in the window of the balance policy.
  pipeline @0 :UInt32 $range(below = "kMaxWorkers");
  iterations @1 :Int64 $count;
  samples @2 :Int64 $count;
  computedNs @3 :Int64 $count;
}
