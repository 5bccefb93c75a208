@0xe7b94f1d6d5c3b03;
# Membership and data: a worker joins, leases samples, and stops.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
using import "/messages/generator/annotations.capnp".ascending;
using import "/messages/generator/annotations.capnp".checked;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".method;
using import "/messages/generator/annotations.capnp".ordered;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";

struct Join {
  # worker -> scheduler. Answered with Start once all shards have admitted the worker, and for a
  # stage once all stages of its pipeline have joined. Repeated until then.
  nonce @0 :UInt64 $type(Common.joinNonce);  # equal in repeats
}

struct Start {
  # scheduler -> worker. The session of the envelope begins, with `iteration`. All stages of a
  # pipeline have the same session. Also sent to an idle worker when samples return. A repeat has no
  # effect.
  iteration @0 :Int64 $type(Common.iteration);
  nonce @1 :UInt64 $type(Common.joinNonce);  # of the latest Join that the scheduler knows
  openBarriers @2 :UInt64;  # a worker that waits at one of these barriers passes it
}

struct WantLease {
  # worker -> scheduler. The worker has no samples from iteration `next` on. Answered with Lease or
  # NoData. A repeat is harmless.
  next @0 :Int64 $type(Common.iteration);
  clock @1 :Int64 $type(Common.clock);
  # All shards have acknowledged the iterations below it. For a pipeline, this is the first stage's
  # view of all stages.
  # The rest counts iterations with samples since the last WantLease. A dropped iteration that the
  # worker has given up counts with an estimate of the samples that it has computed.
  iterations @2 :UInt32;
  samples @3 :UInt64;
  waitedNs @4 :Int64 $type(Common.duration);  # between two computations, for any reason
  computedNs @5 :Int64 $type(Common.duration);
}

struct Lease $checked $method("std::int64_t iterations() const;") {
  # scheduler -> worker. Positions [begin, end) of the epoch's permutation, `batch` of them in each
  # iteration, from `firstIteration` on. begin == end: one iteration without samples (the short last
  # round under bsp).
  lease @0 :UInt64 $type(Common.lease);
  epoch @1 :Int64 $type(Common.epoch);
  begin @2 :Int64 $count;
  end @3 :Int64 $count;
  firstIteration @4 :Int64 $type(Common.iteration);
  batch @5 :UInt32 $range(least = "1");
  roundSamples @6 :UInt32 $range(least = "1");
  # Samples of one round of all live workers: the denominator of a push's weight.
  applied @7 :List(AppliedBucket) $limit("kMaxAppliedBuckets") $ascending;
  # Buckets that already contain these samples. The worker sends empty pushes for them.
  flushes @8 :Bool;
  # The pushes of the last iteration carry the worker's residuals in full, without an encoding.
}

struct AppliedBucket $ordered {
  # A bucket of a partial push that a shard has applied, or will apply. The samples are trained
  # again only for the missing buckets.
  stage @0 :UInt16;
  shard @1 :UInt16;
  bucket @2 :UInt32;  # as in a Push of that stage to that shard
}

struct NoData {
  # scheduler -> worker. No samples at present: finish, then send Idle.
  next @0 :Int64 $type(Common.iteration);  # of the WantLease that it answers
}

struct PushDropped {
  # scheduler -> worker. Under backup and quorum: all rounds below `next` are closed, the last of
  # them without this worker. The worker discards its computation of an earlier round and continues
  # with `next`. The samples are leased again.
  next @0 :Int64 $type(Common.iteration);
}

struct Idle {
  # worker -> scheduler. All its pushes are acknowledged, and it has no lease, or gives its leases
  # back. The worker repeats it when it reaches a barrier while it is idle.
  clock @0 :Int64 $type(Common.clock);  # of this worker; a pipeline is idle when all its stages are
  barrier @1 :UInt64;
  # The number of the barrier at which the worker waits until all workers that take part wait at it
  # or at a later one; 0: none.
}

struct Diverged {
  # worker -> scheduler. The loss became NaN or infinite; the iteration was not pushed.
  iteration @0 :Int64 $type(Common.iteration);
  loss @1 :Float64;
  layer @2 :Text;
}

struct Stop {
  # scheduler -> worker. Finish the present iteration (a stage: all iterations that the first stage
  # has announced), then send Stopped.
  nonce @0 :UInt64 $type(Common.joinNonce);  # of the latest Join that the scheduler knows
}

struct Leave {
  # host or worker -> scheduler. The worker leaves while the run goes on: the scheduler sends it
  # Stop and, on Stopped, returns its leases. A repeat is harmless.
  worker @0 :UInt32 $type(Common.worker);
}

struct Stopped {
  # worker -> scheduler. No message of the worker is in flight any more. The session of the envelope
  # is the last that the worker has begun.
  clock @0 :Int64 $type(Common.clock);
  nonce @1 :UInt64 $type(Common.joinNonce);  # of the Stop that it answers
}
