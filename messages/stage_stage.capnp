@0xc36e18d54fb07a09;
# Along a pipeline: a stage sends activations of micro-batches to the next stage, and their
# gradients to the stage before.
#
# All stages of a pipeline have the same session. A message of an earlier session is stale and
# dropped. A message of a later session waits until its receiver has been started too.
# `chunk` numbers the chunks of the model in the order in which a micro-batch passes them.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
using import "/messages/generator/annotations.capnp".ascending;
using import "/messages/generator/annotations.capnp".checked;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".initially;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";
using Work = import "worker_scheduler.capnp";

struct MiniBatch $checked {
  # stage -> next stage. The samples of `iteration`. The first stage sends it when it has leased
  # them, and each stage forwards it.
  iteration @0 :Int64 $type(Common.iteration);
  epoch @1 :Int64 $type(Common.epoch);
  begin @2 :Int64 $count;
  end @3 :Int64 $count;
  # Positions [begin, end) of the epoch's permutation; begin == end: an iteration without samples.
  roundSamples @4 :UInt32 $range(least = "1") $initially("1");
  # Samples of one round of all live pipelines: the denominator of a push's weight.
  applied @5 :List(Work.AppliedBucket) $limit("kMaxAppliedBuckets") $ascending;  # as in the Lease
  flushes @6 :Bool;  # its pushes carry the residuals in full: see Lease
}

struct NoMore {
  # stage -> next stage. `iteration` and all later ones do not exist. Forwarded like MiniBatch.
  iteration @0 :Int64 $type(Common.iteration);
}

struct Activation {
  # stage -> next stage. The output of chunk `chunk` - 1.
  iteration @0 :Int64 $type(Common.iteration);
  microBatch @1 :UInt32;  # within the iteration
  chunk @2 :UInt32;  # the chunk that reads it
  tensor @3 :Common.TensorRef;  # (samples, output)
}

struct OutputGradient {
  # stage -> stage before. The gradient of an Activation. Its tensor is empty if no earlier layer
  # has weights.
  iteration @0 :Int64 $type(Common.iteration);
  microBatch @1 :UInt32;
  chunk @2 :UInt32;  # the chunk that has read the activation
  tensor @3 :Common.TensorRef;  # (samples, output)
  clock @4 :Int64 $type(Common.clock);
  # The shards have acknowledged all iterations below it to the sender and to all later stages.
}

struct GradientNorm {
  # To the stage before: the sum of the squares of the gradients of the sender and all later stages.
  # To the next stage: of all stages.
  iteration @0 :Int64 $type(Common.iteration);
  squares @1 :Float64;
}

struct GivenUp {
  # To both neighbours. The loss of `iteration` is not finite. The pipeline pushes neither this nor a
  # later iteration. A stage passes it on once, and ignores it afterwards.
  iteration @0 :Int64 $type(Common.iteration);
}
