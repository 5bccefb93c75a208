@0xa94d2c7e18f3b650;
# Within a host group: the lead divides the samples of an iteration, and sums the gradients of the
# other workers before it pushes.
#
# All workers of a group have the same session. A message of an earlier session is stale and
# dropped. A message of a later session waits until its receiver has been started too.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
using import "/messages/generator/annotations.capnp".checked;
using import "/messages/generator/annotations.capnp".count;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";

struct GroupShare $checked {
  # lead -> other worker. Its samples of an iteration, and the weights.
  iteration @0 :Int64 $type(Common.iteration);
  epoch @1 :Int64 $type(Common.epoch);
  begin @2 :Int64 $count;
  end @3 :Int64 $count;
  # Positions [begin, end) of the epoch's permutation.
  blocks @4 :List(Common.BlockRef) $limit("kMaxBlocks");
  # All, in ascending order. The workers share the blobs; they never change.
  lossScale @5 :Float32 $range(least = "0", most = "kMostLossScale");  # as in Weights
}

struct GroupGradient {
  # Other worker -> lead. The gradients of the layers that a part of the computation has completed:
  # the mean over the worker's samples.
  iteration @0 :Int64 $type(Common.iteration);
  part @1 :UInt32;
  blocks @2 :List(Common.BlockRef) $limit("kMaxBlocks");
}

struct GroupDiverged {
  # Other worker -> lead. A loss of the iteration is not finite; no gradients of it follow.
  iteration @0 :Int64 $type(Common.iteration);
  loss @1 :Float64;
  layer @2 :Text;  # the first whose output is not finite, or "the loss"
}

struct GroupEnd {
  # lead -> other worker. `iteration` and all later ones do not exist.
  iteration @0 :Int64 $type(Common.iteration);
}
