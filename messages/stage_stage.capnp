@0xc36e18d54fb07a09;
# Along a pipeline: a stage sends activations of micro-batches to the next one, and their gradients to the one before.
#
# `start` is the number of the Start that the pipeline goes by. Of an earlier one, a message is stale and is dropped; of a later one,
# it waits until its receiver has been started too. `part` counts the parts that the model is cut into, in the order in which a
# micro-batch goes through them.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Common = import "common.capnp";
using Work = import "worker_scheduler.capnp";

struct MiniBatch {
  # stage -> the next one: `iteration` has these samples. The first stage says so when it has been leased them, and all others pass
  # it on.
  start @0 :UInt64;
  iteration @1 :Int64;
  epoch @2 :Int64;
  begin @3 :Int64;              # positions [begin, end) of the epoch's permutation; begin == end: an iteration without samples
  end @4 :Int64;
  roundSamples @5 :UInt32;      # of one round of all live pipelines: the denominator of a push's weight
  applied @6 :List(Work.AppliedBucket);  # as in the Lease
}

struct NoMore {
  # stage -> the next one: there is no iteration from this one on. Passed on like MiniBatch.
  start @0 :UInt64;
  iteration @1 :Int64;
}

struct Activation {
  # stage -> the next one: the output of part `part` - 1.
  start @0 :UInt64;
  iteration @1 :Int64;
  microBatch @2 :UInt32;        # within the iteration
  chunk @3 :UInt32;              # that reads it
  tensor @4 :Common.TensorRef;  # (samples, output)
}

struct OutputGradient {
  # stage -> the one before: the gradient of the output of part `part`, or that it has gone back, where nobody wants it.
  start @0 :UInt64;
  iteration @1 :Int64;
  microBatch @2 :UInt32;
  chunk @3 :UInt32;              # that reads it
  tensor @4 :Common.TensorRef;  # (samples, output); empty where no layer before has weights
  clock @5 :Int64;              # iterations below it are acknowledged to the sender, and to all behind it
}

struct GivenUp {
  # stage -> the one before: the loss of `iteration` is not finite. Neither that nor a later one will be pushed.
  start @0 :UInt64;
  iteration @1 :Int64;
}
