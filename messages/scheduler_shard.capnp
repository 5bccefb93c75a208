@0xb48a7d02c19e4f04;
# Membership as the shards see it, and consistent snapshots. `view` grows with every change of the
# membership; a shard refuses an order of an older view. Both sides number their messages, and
# repeat those that are lost with a link (Envelope.sequence).

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
using import "/messages/generator/annotations.capnp".ascending;
using import "/messages/generator/annotations.capnp".checked;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".finite;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";

struct Received {
  # Either side. Acknowledges messages, by its envelope.
}

struct Admit {
  # scheduler -> shard. Insert the worker at max(iteration, own min_clock), which pins the minimum.
  # Answered with Admitted.
  worker @0 :UInt32 $type(Common.worker);
  session @1 :UInt64 $type(Common.session);
  iteration @2 :Int64 $type(Common.iteration);
  view @3 :UInt64 $type(Common.view);
}

struct Admitted {
  # shard -> scheduler.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);  # the worker's clock here
  view @2 :UInt64 $type(Common.view);  # of the Admit that it answers
}

struct Raise {
  # scheduler -> shard. The worker starts at `iteration`, the largest that any shard answered.
  worker @0 :UInt32 $type(Common.worker);
  iteration @1 :Int64 $type(Common.iteration);
  view @2 :UInt64 $type(Common.view);
}

struct Fence {
  # scheduler -> shard. Refuse all further messages of this worker's session. Answered with
  # Fenced.
  worker @0 :UInt32 $type(Common.worker);
  view @1 :UInt64 $type(Common.view);
}

struct Fenced {
  # shard -> scheduler. The worker's progress at this shard.
  worker @0 :UInt32 $type(Common.worker);
  clock @1 :Int64 $type(Common.clock);  # complete iterations
  applied @2 :List(UInt32) $range(below = "kMaxBuckets") $limit("kMaxBuckets") $ascending;
  # Buckets of iteration `clock` that the shard has applied, or will apply.
}

struct Remove {
  # scheduler -> shard. The worker leaves the minimum: evicted, idle or stopped.
  worker @0 :UInt32 $type(Common.worker);
  view @1 :UInt64 $type(Common.view);
}

struct Bound {
  # scheduler -> shard. The staleness bound for iterations from `from` on. It does not change the
  # bound of an iteration that the shard has already permitted to a worker. Unanswered.
  from @0 :Int64 $type(Common.iteration);
  staleness @1 :UInt32;
}

struct RoundClosed {
  # shard 0 -> scheduler. Under backup and quorum: proposes to close `round` with the pushes of the
  # contributors, which are complete at shard 0.
  round @0 :Int64 $type(Common.iteration);
  contributors @1 :List(UInt32) $type(Common.worker) $limit("kMaxWorkers") $ascending;
  view @2 :UInt64 $type(Common.view);
  # Shard 0's present view. The scheduler ignores a proposal of an older view, and shard 0 proposes
  # again.
}

struct CloseRound {
  # scheduler -> shard. Apply `round` as soon as the contributors' pushes are complete at this
  # shard, and drop the pushes of all other workers.
  round @0 :Int64 $type(Common.iteration);
  contributors @1 :List(UInt32) $type(Common.worker) $limit("kMaxWorkers") $ascending;
  view @2 :UInt64 $type(Common.view);
  scale @3 :Float64 = 1 $range(least = "0", most = "kMaxWorkers");
  # Factor of the weights of these pushes, after which they add up to at most 1.
}

struct EndGrace {
  # scheduler -> shard 0. Under quorum: the run is to stop, maybe after a checkpoint. The open round
  # and later ones do not wait for more pushes than they need. Unanswered.
}

struct Snapshot {
  # scheduler -> shard. Proposes a consistent snapshot, which replaces an earlier one that the shard
  # has not taken yet. Answered with SnapshotVote.
  snapshot @0 :UInt64;  # every proposal has a number of its own
  iterations @1 :List(Int64) $type(Common.iteration) $limit("kMaxWorkers");
  # By pipeline. The snapshot holds the pushes of each pipeline below its iteration.
  immediate @2 :Bool;
  # Take the present weights, without a vote: for evaluations under asp, which do not wait for the
  # slowest worker.
  evaluate @3 :Bool = true;  # send the snapshot to the monitor
  checkpoint @4 :UInt64;  # store it, with the state of the optimizer, under this number; 0: do not
}

struct SnapshotVote {
  # shard -> scheduler.
  snapshot @0 :UInt64;
  accepted @1 :Bool;  # false: the shard has a push that the snapshot must not hold
}

struct SnapshotTaken {
  # shard -> scheduler. No later push changes the snapshot at this shard.
  snapshot @0 :UInt64;
}

struct Stored {
  # shard -> scheduler. The shard's part of a checkpoint is on the disk, or could not be written.
  checkpoint @0 :UInt64;
  files @1 :List(StoredFile) $limit("kMaxShardFiles");
  blocks @2 :List(Progress) $limit("kMaxBlocks");
  error @3 :Text;  # empty: all files were written
  residuals @4 :List(UInt32) $type(Common.worker) $limit("kMaxWorkers") $ascending;
  # Workers whose last encoded push before the checkpoint has left a residual.
  lossScale @5 :Float32 $range(least = "0", most = "kMostLossScale");  # 0: none
  lossScaleSince @6 :Int64 $type(Common.iteration);

  struct Progress {
    # Of the optimizer on a block.
    block @0 :UInt32 $type(Common.block);
    version @1 :Int64 $type(Common.version);
    progress @2 :Float64 $finite;  # sum of the weights of the pushes applied
    samples @3 :Int64 $count;
  }
}

struct StoredFile {
  # A file of a checkpoint.
  name @0 :Text;
  bytes @1 :UInt64;
  digest @2 :Text;  # XXH3, 128 bits, in hexadecimal
}

struct Finish {
  # scheduler -> shard. No worker pushes again: send the final state and the final report to the
  # monitor.
}

struct SnapshotState $checked {
  # shard -> monitor. The shard's blocks at the snapshot.
  snapshot @0 :UInt64;
  iteration @1 :Int64 $type(Common.iteration);  # the least one of the Snapshot's
  final @2 :Bool;
  blocks @3 :List(Common.BlockRef) $limit("kMaxBlocks");
}
