@0xf3b8d1e6094a27c5;
# The file of `--trace-messages`: a stream of MessageRecord, for `leeway messages` and for
#
#     capnp decode -I. messages/trace.capnp MessageRecord < RUN/messages.bin

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway");
using Envelope = import "envelope.capnp";

struct MessageRecord $Cpp.schemaOnly {
  # A message that reached an actor.
  ns @0 :Int64;  # since the start of the run
  from @1 :Text;  # "worker2"
  to @2 :Text;
  tensorBytes @3 :UInt64;  # size of its tensors, which are not recorded
  envelope @4 :Envelope.Envelope;
}
