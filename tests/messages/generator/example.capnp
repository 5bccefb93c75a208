@0xd2c1690070ebda43;
# One use of each feature of the generator.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::example_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::example");
$Cpp.include("core/expected.hpp");
$Cpp.include("core/ids.hpp");
$Cpp.include("messages/message.hpp");
$Cpp.support("messages/wire.hpp");
$Cpp.visitable;

const clock :Cpp.Type = (name = "Clock");
const worker :Cpp.Type = (name = "WorkerId", below = "kMaxWorkers");

enum Colour { red @0; darkBlue @1; }

struct Letter $Cpp.namespace("leeway") $Cpp.root(decode = "decode_letter") {
  protocol @0 :UInt16 $Cpp.constant("kProtocolVersion");
  body :union $Cpp.type(name = "example::Body") {
    none @1 :Void;
    hello @2 :Hello;
    bye @3 :Void;
    # The end.
    parcel @4 :Parcel;
  }
}

struct Hello $Cpp.checked {
  # A greeting,
  # in two lines.
  from @0 :UInt32 $Cpp.type(.worker);
  clocks @1 :List(Int64) $Cpp.type(.clock) $Cpp.limit("10") $Cpp.ascending;
  text @2 :Text = "hi";  # the greeting
  share @3 :Float64 = 0.5 $Cpp.range(above = "0", below = "1");
  colour @4 :Colour = darkBlue;
  size @5 :UInt8 $Cpp.range(least = "1", most = "kMaxRank") $Cpp.initially("3");
  mark @6 :Mark;

  struct Mark $Cpp.ordered {
    shard @0 :UInt16;
    part @1 :UInt32;
  }
}

struct Parcel $Cpp.blobs(each = ["content"]) {
  kind :union $Cpp.type(name = "example::ParcelKind") {
    # The cost of delivery.
    seconds @0 :Float64;
    count @1 :UInt32;
  }
  layers @2 :List(Layer) $Cpp.limit("4");
}

struct Layer {
  # A shape, or nested layers.
  union {
    flat @0 :Void;
    wide :group {
      width @1 :UInt32 = 2;
    }
    nested @2 :Nested;
  }
}

struct Size $Cpp.method("bool is_exact() const { return index() == 0; }") {
  union {
    exact :group {
      bytes @0 :UInt64;
    }
    unknown @1 :Void;
  }
}

struct Nested {
  layers @0 :List(Layer) $Cpp.limit("4");
}
