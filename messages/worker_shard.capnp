@0xf0d2c7a4be1b8a02;
# The data path: a worker pulls weights from a shard and pushes gradients to it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Common = import "common.capnp";

struct Pull {
  # worker -> shard. Asks for those of the shard's blocks that the worker trains, all or its stage's, to start `iteration`. Answered with Weights once the staleness rule
  # allows it, parked until then; Refused when the worker is not admitted.
  iteration @0 :Int64;
  ownClock @1 :Int64;           # iterations this worker has pushed: the answer must contain them, and of blocks of two stages the other's half
  dtype @2 :Common.TensorRef.DType;
}

struct Weights {
  # shard -> worker. The blocks that were asked for; the blobs are shared with the shard and never change.
  iteration @0 :Int64;
  blocks @1 :List(Common.BlockRef);
}

struct Push {
  # worker -> shard. One part of an iteration's contribution. Answered with Pushed when it has been applied, or when its round
  # was closed without it; a repeat is acknowledged and not applied; a gap is Refused.
  iteration @0 :Int64;
  bucket @1 :UInt32;
  bucketCount @2 :UInt32;         # parts that this shard is owed for the iteration
  kind @3 :Kind;
  weight @4 :Float64;           # samples / samples of one round of all live workers
  samples @5 :UInt32;
  blocks @6 :List(Common.BlockRef);
  rows @7 :List(UInt32);        # row set of a sparse push; empty: all rows

  enum Kind { gradient @0; delta @1; empty @2; }
}

struct Pushed {
  # shard -> worker. The part may be forgotten.
  iteration @0 :Int64;
  bucket @1 :UInt32;
  durability @2 :Durability;
  repeat @3 :Bool;              # not applied now: it had been before, or its round was closed without it

  enum Durability { applied @0; durable @1; }
}

struct Refused {
  # Any role -> sender of a message that it will not act on.
  reason @0 :Reason;
  text @1 :Text;
  iteration @2 :Int64;

  enum Reason {
    malformed @0;               # it could not be decoded, or contradicts the model
    unknownWorker @1;           # not admitted here, or evicted
    staleView @2;               # a control message of an older membership
    tooStale @3;                # the gradient is older than the policy takes
    gap @4;                     # parts before this one are missing
  }
}
