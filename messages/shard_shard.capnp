@0xe5b7c90a1d4f6b0c;
# Between shards: the norm of a round's gradient, if the plan limits it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
using import "/messages/generator/annotations.capnp".type;
using Common = import "common.capnp";

struct RoundNorm {
  # shard -> shard. The sender's part of the norm of a round, of which the shards of a run all need
  # all parts. A repeat changes nothing.
  round @0 :Int64 $type(Common.iteration);
  squares @1 :Float64;  # sum of the squares of the mean gradient over the sender's parameters
  below @2 :Int64 $type(Common.iteration);  # the sender needs no part of a round below this one
  asks @3 :Bool;  # answer with the receiver's part, which the sender lacks
}
