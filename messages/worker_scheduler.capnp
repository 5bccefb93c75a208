@0xe7b94f1d6d5c3b03;
# Membership and data: a worker joins, leases samples, and stops.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");

struct Join {
  # worker -> scheduler. Wants to take part. Answered with Start once all shards know the worker, or Refused when this
  # incarnation was evicted. A stage waits for the others of its pipeline, and repeats it meanwhile.
}

struct Start {
  # scheduler -> worker. Go on with `iteration`; also sent to an idle worker that comes back.
  iteration @0 :Int64;
  number @1 :UInt64;            # counts the Starts of the worker, or of its pipeline, through all its lives, from 1: one that was heard before changes nothing
}

struct WantLease {
  # worker -> scheduler. Has no samples beyond its iteration `next` - 1. Answered with Lease or NoData. Repeating it is harmless.
  next @0 :Int64;
  clock @1 :Int64;              # iterations below it are acknowledged by all shards, to all stages as far as the first one knows
  iterations @2 :UInt32;        # with samples, finished since the last WantLease; so are the three below
  samples @3 :UInt64;
  waitedNs @4 :Int64;           # between two computations, for whatever reason
  computedNs @5 :Int64;
}

struct Lease {
  # scheduler -> worker. Positions [begin, end) of the epoch's permutation, `batch` of them an iteration, from `firstIteration` on.
  # begin == end: one iteration without samples (the short last round under bsp).
  lease @0 :UInt64;
  epoch @1 :Int64;
  begin @2 :Int64;
  end @3 :Int64;
  firstIteration @4 :Int64;
  batch @5 :UInt32;
  roundSamples @6 :UInt32;      # of one round of all live workers: the denominator of a push's weight
  applied @7 :List(AppliedBucket);  # what has these samples already: pushed as empty. Ascending
}

struct AppliedBucket {
  # A part of a push that a shard has applied, or will, of an iteration that was not finished: its samples are trained again for the
  # parts that are missing alone.
  stage @0 :UInt16;
  shard @1 :UInt16;
  bucket @2 :UInt32;              # as in a Push of that stage to that shard
}

struct NoData {
  # scheduler -> worker. Nothing to lease now: finish, then say Idle.
  next @0 :Int64;               # of the WantLease that it answers
}

struct PushDropped {
  # scheduler -> worker. Under backup: all rounds below `next` are closed, the last of them without this worker. Go on with
  # `next`, and throw away what is computed of an earlier one; its samples are leased again.
  next @0 :Int64;
}

struct Idle {
  # worker -> scheduler. All its pushes are acknowledged and it has no lease.
  clock @0 :Int64;              # of this worker; a pipeline is idle when all its stages are
  start @1 :UInt64;             # number of the Start that it ends
}

struct Diverged {
  # worker -> scheduler. The loss became NaN or infinite; the iteration was not pushed.
  iteration @0 :Int64;
  loss @1 :Float64;
  layer @2 :Text;
}

struct Stop {
  # scheduler -> worker. Finish the iteration that is being computed, or all that the first stage has told the next of, then say
  # Stopped.
}

struct Leave {
  # host -> scheduler. The worker is to take part no longer, while the run goes on without it: it is told to Stop, and once it has
  # Stopped, what it was leased goes back. Repeating it is harmless.
  worker @0 :UInt32;
}

struct Stopped {
  # worker -> scheduler. Nothing of it is on its way any more.
  clock @0 :Int64;
  start @1 :UInt64;             # number of the last Start that it has heard
}
