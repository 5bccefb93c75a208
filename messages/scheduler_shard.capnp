@0xb48a7d02c19e4f04;
# Membership as the shards see it, and consistent cuts. `view` grows with every change of the membership; a shard refuses an
# older one.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Common = import "common.capnp";

struct Admit {
  # scheduler -> shard. Insert the worker at max(iteration, own min_clock), which pins the minimum. Answered with Admitted.
  worker @0 :UInt32;
  incarnation @1 :UInt32;
  iteration @2 :Int64;
  view @3 :UInt64;
}

struct Admitted {
  # shard -> scheduler.
  worker @0 :UInt32;
  iteration @1 :Int64;          # the clock at which the worker stands here
  view @2 :UInt64;              # of the Admit that it answers
}

struct Raise {
  # scheduler -> shard. The worker starts at `iteration`, the largest that any shard answered.
  worker @0 :UInt32;
  iteration @1 :Int64;
  view @2 :UInt64;
}

struct Fence {
  # scheduler -> shard. Accept nothing more of this worker's incarnation. Answered with Fenced.
  worker @0 :UInt32;
  view @1 :UInt64;
}

struct Fenced {
  # shard -> scheduler. What the shard has of the worker.
  worker @0 :UInt32;
  clock @1 :Int64;              # iterations it has whole
  applied @2 :List(UInt32);     # parts of iteration `clock` that it has applied as well, or will. Ascending
}

struct Remove {
  # scheduler -> shard. The worker leaves the minimum: evicted, idle or stopped.
  worker @0 :UInt32;
  view @1 :UInt64;
}

struct Bound {
  # scheduler -> shard. The staleness bound for iterations from `from` on; unanswered. The bound of an iteration that the shard
  # has let somebody into stays as it is.
  from @0 :Int64;
  staleness @1 :UInt32;
}

struct RoundClosed {
  # shard 0 -> scheduler. Under backup: the pushes that suffice for `round` are whole here; they are of these workers.
  round @0 :Int64;
  contributors @1 :List(UInt32);  # ascending
  view @2 :UInt64;              # that shard 0 goes by: of an older one, the scheduler ignores it, and shard 0 decides again
}

struct CloseRound {
  # scheduler -> shard. Apply `round` as soon as the contributors' pushes are whole here; those of the others are late and dropped.
  round @0 :Int64;
  contributors @1 :List(UInt32);  # ascending
  view @2 :UInt64;
}

struct Snapshot {
  # scheduler -> shard. Proposes a consistent cut of all pushes below `iteration`. Answered with SnapshotVote.
  snapshot @0 :UInt64;
  iteration @1 :Int64;
  immediate @2 :Bool;            # no cut: the present weights, unanswered. For asp, where a cut would wait for the slowest without a bound
}

struct SnapshotVote {
  # shard -> scheduler.
  snapshot @0 :UInt64;
  iteration @1 :Int64;          # of the Cut that it answers
  largest @2 :Int64;            # the largest iteration seen here; the cut is armed iff it is not beyond `iteration`
}

struct Finish {
  # scheduler -> shard. No worker will push again: send the final state and the final report to the monitor.
}

struct SnapshotState {
  # shard -> monitor. The shard's blocks at the cut.
  snapshot @0 :UInt64;
  iteration @1 :Int64;
  final @2 :Bool;
  blocks @3 :List(Common.BlockRef);
}
