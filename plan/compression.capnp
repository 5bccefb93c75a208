@0x9f2b61d4c8a7e350;
# How messages carry gradients and weights in fewer bytes.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.flat;
$Cpp.stem("compression");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".name;

struct Codec {
  union {
    f32 @0 :Void $name("NoCodec") $help("no encoding");
    bf16 @1 :Void $help("16 bits with the range of 32");
    fp16 @2 :Void $help("16 bits, up to 65,504");
    int8 @3 :Void $help("8 bits, with a scale for each 256 values");
    int4 @4 :Void $help("4 bits, with a scale for each 64 values");
    twoBit :group $help("plus or minus a threshold, or 0") {
      threshold @5 :Float64 = 0.5 $range(least = 1e-30, most = 1e9)
        $help("smallest absolute value that is sent");
    }
    oneBit @6 :Void $help("signs, with two means for each 1,024 values");
    topK :group $help("the values that are largest without their signs") {
      share @7 :Float64 = 0.01 $range(least = 1e-6, most = 1) $help("share of the values");
      warmup @9 :Float64 $range(least = 0, most = 1e6)
        $help("epochs in which the share falls to its value, from a quarter; 0: none");
    }
    randomK :group $help("values at random places") {
      share @8 :Float64 = 0.01 $range(least = 1e-6, most = 1) $help("share of the values");
    }
  }
}

struct Compression {
  push @0 :Codec $help("of gradients; workers add what an encoding loses to the next gradient");
  pull @1 :Codec $help("of weights: none, bf16, fp16 or int8");
  activations @2 :Codec $help("between the stages of a pipeline: none, bf16, fp16 or int8");
  activationGradients @3 :Codec $help("between the stages of a pipeline: none, bf16, fp16 or int8");
}
