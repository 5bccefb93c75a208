@0xa1c5be0b3b0f6d01;
# Types that several conversations share.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::msg");
$Cpp.include("core/address.hpp");
$Cpp.include("core/ids.hpp");
$Cpp.include("core/time.hpp");
$Cpp.include("messages/tensors.hpp");
$Cpp.support("messages/wire.hpp");
using import "/messages/generator/annotations.capnp".mapped;

# ---- C++ types of numbers ----

const worker :Cpp.Type = (name = "WorkerId", below = "kMaxWorkers");
const shard :Cpp.Type = (name = "ShardId", below = "kMaxShards");
const block :Cpp.Type = (name = "BlockId", below = "kMaxBlocks");
const lease :Cpp.Type = (name = "LeaseId");
const session :Cpp.Type = (name = "Session");
const joinNonce :Cpp.Type = (name = "JoinNonce");
const view :Cpp.Type = (name = "View");
const iteration :Cpp.Type = (name = "Iteration");
const clock :Cpp.Type = (name = "Clock");
const version :Cpp.Type = (name = "Version");
const epoch :Cpp.Type = (name = "Epoch");
const duration :Cpp.Type = (name = "Duration");
const shape :Cpp.Type = (name = "Shape", wholeList = true);

struct Actor $mapped(type = "Address") {
  kind @0 :UInt8;  # RoleKind
  index @1 :UInt32;
}

struct TensorRef $mapped(type = "msg::StageTensor", blobs = true) {
  # Refers to tensor data in a blob of the message.
  blob @0 :UInt32;  # index among the message's blobs
  dtype @1 :DType;
  shape @2 :List(Int64);
  layout @3 :Layout;
  codec @4 :Codec;
  codecParameters @5 :Data;

  enum DType $mapped(type = "DType") { f32 @0; bf16 @1; f16 @2; i8 @3; i32 @4; }
  enum Layout { plain @0; }  # row-major
  enum Codec $mapped(type = "CodecId") {
    none @0; bf16 @1; fp16 @2; int8 @3; int4 @4; twoBit @5; oneBit @6; topK @7; randomK @8;
  }
  # Of dtype f32. `shape` is that of the values.
}

struct BlockRef $mapped(type = "msg::BlockData", blobs = true) {
  # A block's weights, or its gradient.
  block @0 :UInt32;
  version @1 :Int64;  # of the weights; for a gradient, of the weights it was computed on
  tensor @2 :TensorRef;  # absent in an empty push
}
