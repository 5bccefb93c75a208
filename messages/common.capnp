@0xa1c5be0b3b0f6d01;
# What several conversations share.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");

struct TensorRef {
  # Names tensor data that travels in a blob beside the header.
  blob @0 :UInt32;              # index among the message's blobs
  dtype @1 :DType;
  shape @2 :List(Int64);
  layout @3 :Layout;
  codec @4 :Codec;
  codecParameters @5 :Data;

  enum DType { f32 @0; bf16 @1; f16 @2; i8 @3; i32 @4; }
  enum Layout { plain @0; }     # row-major
  enum Codec { none @0; }
}

struct BlockRef {
  # A block's weights, or its gradient.
  block @0 :UInt32;
  version @1 :Int64;            # of the weights; for a gradient, of the weights it was computed on
  tensor @2 :TensorRef;         # absent for an empty push
}
