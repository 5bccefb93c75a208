@0xf0d2c7a4be1b8a02;
# The data path: a worker pulls weights from a shard and pushes gradients to it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
using import "/messages/generator/annotations.capnp".ascending;
using import "/messages/generator/annotations.capnp".checked;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";

struct Pull $checked {
  # worker -> shard. Asks for the blocks on this shard that the worker or stage trains, to start
  # `iteration`. The shard parks the pull until the staleness rule allows it and answers with
  # Weights. It answers with Refused if the worker is not admitted.
  iteration @0 :Int64 $type(Common.iteration);
  ownClock @1 :Int64 $type(Common.clock);
  # Iterations that this worker has pushed. The answer contains them and, for tied weights, the
  # other stage's gradients of the same iterations.
  dtype @2 :Common.TensorRef.DType;
  number @3 :UInt32;  # of the worker's pull; repeats have the same
}

struct Weights $checked {
  # shard -> worker. The blocks of a Pull. The worker shares the blobs with the shard; they never
  # change.
  iteration @0 :Int64 $type(Common.iteration);
  blocks @1 :List(Common.BlockRef) $limit("kMaxBlocks");
  number @2 :UInt32;  # of the pull
  lossScale @3 :Float32 $range(least = "0", most = "kMostLossScale");
  # Factor of the loss of this iteration under fp16; 0: none.
}

struct Push $checked {
  # worker -> shard. One bucket of an iteration. Answered with Pushed when the shard has applied it,
  # or has closed its round without it. A repeat is acknowledged and not applied; a gap is Refused.
  iteration @0 :Int64 $type(Common.iteration);
  bucket @1 :UInt32;
  bucketCount @2 :UInt32 $range(least = "1", most = "kMaxBuckets");
  # Buckets that the worker pushes to this shard in the iteration.
  kind @3 :Kind;
  weight @4 :Float64 $range(least = "0");  # samples / samples of one round of all live workers
  samples @5 :UInt32;
  blocks @6 :List(Common.BlockRef) $limit("kMaxBlocks");
  rows @7 :List(UInt32);  # row set of a sparse push; empty: all rows
  scale @8 :Float32 = 1;
  # Factor of the gradients, from 0 to 1, which limits the norm of the push. 1 under policies with
  # rounds. NaN if the norm is.
  assigned @9 :List(UInt32) $limit("kMaxBlockSlices") $ascending;
  # Slices of the bucket that have new weights instead of gradients, counted over its blocks. They
  # are assigned after the update; in a round, those of the last worker count.

  lossScale @10 :Float32 $range(least = "0", most = "kMostLossScale");
  # Under fp16: the factor that the loss had. The gradients are divided by it.

  enum Kind {
    gradient @0;
    delta @1;  # a pseudo-gradient: the weights before local steps minus those after them
    empty @2;
    overflow @3;  # a gradient of the iteration is not finite: no data, and the update is skipped
  }
}

struct Pushed {
  # shard -> worker. The worker may discard the bucket.
  iteration @0 :Int64 $type(Common.iteration);
  bucket @1 :UInt32 $range(below = "kMaxBuckets");
  durability @2 :Durability;
  repeat @3 :Bool;  # the shard applied it earlier, or closed its round without it
  dropped @4 :Bool;  # the shard closed its round without it, or skipped its update

  enum Durability { applied @0; durable @1; }
}

struct Refused {
  # Any role -> the sender of a message that the role refuses.
  reason @0 :Reason;
  text @1 :Text;
  iteration @2 :Int64 $type(Common.iteration);

  enum Reason {
    malformed @0;      # cannot be decoded, or contradicts the model
    unknownWorker @1;  # not admitted here, or evicted
    staleView @2;      # the order has an older view
    gap @3;            # earlier buckets are missing
  }
}

struct Outdated {
  # shard 0 -> worker. Under delay_threshold: the weights of the worker's pull for `iteration` are
  # as old as the limit. A worker that has pushed nothing of the iteration pulls again and computes
  # the same samples with newer weights; otherwise the message has no effect.
  iteration @0 :Int64 $type(Common.iteration);
}
