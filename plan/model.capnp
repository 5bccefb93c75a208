@0x9f27b4e81c6d0a35;
# The layers of a model, and its loss.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.flat;
$Cpp.stem("model");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".notEmpty;
using import "/plan/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".name;

struct Layer {
  union {
    linear @0 :Linear $help("y = W x + b, for flat samples or for each token");
    relu @1 :Void $help("max(0, x)");
    flatten @2 :Void $help("flattens an image to one row");
    custom @3 :Custom $help("a layer that the scenario program has registered");
    conv2d @4 :Conv2d $help("convolution of images (channels x height x width), square kernels");
    maxPool2d @5 :MaxPool2d $help("maximum of each window");
    avgPool2d @6 :AvgPool2d $help("mean of each window");
    batchNorm @7 :BatchNorm
      $help("normalises over batch, height and width, or only over the batch for flat samples");
    layerNorm @8 :LayerNorm $help("normalises over the last axis");
    gelu @9 :Void $help("x * Phi(x), with the distribution Phi of the normal distribution");
    tanh @10 :Void $help("hyperbolic tangent");
    sigmoid @11 :Void $help("1 / (1 + e^-x)");
    dropout @12 :Dropout $help("zeroes activations at random during training");
    embedding @13 :Embedding $help("a learned row of features for each token number");
    residual @14 :Residual $help("y = body(x) + shortcut(x)");
    positions @15 :Positions
      $help("adds a learned row of features for each position in a sequence");
    attention @16 :Attention $help("causal attention over concatenated queries, keys and values");
    unembedding @17 :Void
      $help("a score for each token: the product with its row of the embedding");
  }
  struct Linear {
    outputs @0 :UInt32 $range(Range.atLeastOne) $help("output features");
    init @1 :Init $help("distribution of the initial weights");
    bias @2 :Bool = true $help("whether b is added");
    deviation @3 :Float64 = 0.01 $range(Range.aboveZeroFloat)
      $help("standard deviation for init = \"normal\"");
  }
  struct Conv2d {
    outputs @0 :UInt32 $range(Range.atLeastOne) $help("output channels");
    kernel @1 :UInt32 = 3 $range(Range.pixels) $help("pixels of the kernel, each way");
    stride @2 :UInt32 = 1 $range(Range.pixels) $help("pixels from one window to the next");
    padding @3 :UInt32 $help("zeros around the image");
    groups @4 :UInt32 = 1 $help("groups of channels that are convolved separately");
    bias @5 :Bool = true $help("whether a bias is added");
    init @6 :Init $help("distribution of the initial weights");
  }
  struct MaxPool2d {
    kernel @0 :UInt32 = 2 $range(least = 1, most = 15) $help("pixels of a window, each way");
    # The position of the maximum is kept in a byte.
    stride @1 :UInt32 = 2 $range(Range.pixels) $help("pixels from one window to the next");
    padding @2 :UInt32 $help("pixels around the image that the maximum ignores");
  }
  struct AvgPool2d {
    kernel @0 :UInt32 = 2 $range(least = 0, most = Range.maxPixels)
      $help("pixels of a window, each way; 0: the whole image");
    stride @1 :UInt32 = 2 $range(Range.pixels) $help("pixels from one window to the next");
    padding @2 :UInt32 $help("zeros around the image");
  }
  struct BatchNorm {
    epsilon @0 :Float64 = 1e-5 $range(Range.aboveZeroFloat) $help("added to the variance");
    momentum @1 :Float64 = 0.1 $range(above = 0, most = 1)
      $help("weight of the newest batch in the statistics for evaluation");
  }
  struct LayerNorm {
    epsilon @0 :Float64 = 1e-5 $range(Range.aboveZeroFloat) $help("added to the variance");
  }
  struct Dropout {
    probability @0 :Float64 = 0.5 $range(least = 0, below = 1, float = true)
      $help("probability that an activation becomes zero");
  }
  struct Embedding {
    vocabulary @0 :UInt32 $help("number of tokens; 0: the number of classes of the data");
    features @1 :UInt32 $range(Range.atLeastOne) $help("features per row");
    init @2 :Init = normal $help("distribution of the initial rows");
    deviation @3 :Float64 = 0.01 $range(Range.aboveZeroFloat)
      $help("standard deviation for init = \"normal\"");
  }
  struct Positions {
    init @0 :Init = normal $help("distribution of the initial rows");
    deviation @1 :Float64 = 0.01 $range(Range.aboveZeroFloat)
      $help("standard deviation for init = \"normal\"");
  }
  struct Attention {
    heads @0 :UInt32 = 4 $range(Range.atLeastOne) $help("heads, which share the features");
  }
  struct Residual {
    body @0 :List(Layer) $limit("kMaxBuckets") $help("layers");
    shortcut @1 :List(Layer) $limit("kMaxBuckets") $help("layers; none: the identity");
  }
  struct Custom $name("CustomLayer") {
    name @0 :Text $notEmpty("the name that the layer is registered with")
      $help("name that the layer is registered with");
    arguments @1 :Text $help("argument of the layer's factory");
  }
}

enum Init {
  he @0 $help("normal, scaled by the inputs (He et al. 2015)");
  xavier @1 $help("uniform, scaled by inputs and outputs (Glorot, Bengio 2010)");
  normal @2 $help("normal with the given deviation");
  zeros @3 $help("all 0");
  ones @4 $help("all 1");
}

enum Loss {
  softmaxCrossEntropy @0 $help("for classes");
  meanSquaredError @1 $help("for numbers");
  sigmoidCrossEntropy @2 $help("for numbers in 0..1, or for two classes with one output");
}
