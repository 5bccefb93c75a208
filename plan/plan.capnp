@0xd3a9f1c27b5e4a10;
# A plan: everything that decides the outcome of a run, and nothing else. A scenario program builds
# one, a TOML or JSON file is mapped onto it field by field, a cluster sends it to its nodes, and
# the run folder keeps it.
#
# In text, names are snake_case. A union is a table with one key, the name of the arm
# (`consistency.ssp.staleness = 3`). An arm whose fields keep their defaults may be written as its
# bare name (`consistency = "bsp"`).
#
# `$help`, `$flag` and `$values` are the source of `--help` and of docs/settings.md; `$range` and
# `$notEmpty` also of the checks in validate(). Every Float64 must be finite.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.flat;
$Cpp.stem("values");
$Cpp.include("core/address.hpp");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using Saved = import "checkpoints.capnp";
using import "/plan/annotations.capnp".flag;
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".notEmpty;
using import "/plan/annotations.capnp".range;
using import "/plan/annotations.capnp".values;
using import "/messages/generator/annotations.capnp".initially;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".name;
using import "/messages/generator/annotations.capnp".type;

const actor :Cpp.Type = (name = "Address");

struct Plan $Cpp.namespace("leeway")
    $Cpp.root(decode = "decode_plan", kind = "plan", words = true) {
  name @0 :Text = "unnamed" $help("name of the run and of its folder");
  seed @1 :UInt64 = 1 $flag("--seed") $help("seed of all randomness");
  data @2 :DataSource $flag("--data") $help("training and test data")
    $values("the directory of Fashion-MNIST, or the CSV or text file to train on");
  model @3 :List(Layer) $limit("kMaxBuckets") $help("layers, in order");
  loss @4 :Loss $help("function that training minimises");
  optimizer @5 :Optimizer $flag("--optimizer") $help("how a gradient changes the weights");
  lrSchedule @6 :LrSchedule $help("learning rate as a function of the epoch");
  consistency @7 :Consistency $flag("--staleness")
    $help("how far a worker may be ahead of the slowest worker")
    $values("0, 1, 2, ... iterations, bsp (a barrier), asp (no bound), \"adaptive(1,8)\" (a bound "
        "that moves from 1 to 8) or \"backup(N)\" (a barrier that does not wait for the last N)");
  workers @8 :UInt32 = 4 $range(Range.workers) $flag("--workers") $help("number of workers");
  shards @9 :UInt32 = 2 $range(least = 1, most = Range.maxShards) $flag("--shards")
    $help("number of shards, which hold the parameters");
  batch @10 :UInt32 = 64 $range(least = 1, most = 16777216) $flag("--batch")
    $help("samples per iteration of a worker");
  microBatches @11 :UInt32 = 1 $range(least = 1) $flag("--micro-batches")
    $help("micro-batches per batch, whose gradients are summed; a pipeline runs them one after "
        "the other");
  prefetch @12 :Bool $flag("--prefetch")
    $help("pull the next weights while computing; costs one iteration of staleness");
  leaseSize @13 :UInt32 $flag("--lease-size")
    $help("samples per lease under ssp and asp; 0: eight batches");
  stragglers @14 :List(Straggler) $limit("kMaxWorkers") $flag("--slow")
    $help("workers that are slowed down")
    $values("3:4x (worker 3 takes four times as long), 3:4x@20%/50 (in 20% of its iterations, in "
        "bursts of 50), all:pareto(1.5), 3:pauses(200ms/50), 3:decay(8x/1000), "
        "3:sharing(3x,100/300), 3:trace(FILE), or a list with commas; none removes the stragglers "
        "of the scenario");
  faults @15 :List(Fault) $limit("kMaxWorkers") $flag("--fault") $help("faults to inject")
    $values("2:crash@3s, 2:crash(500ms)@100 (restarted after 500 ms), 2:joins@3s, 2:leaves@3s, "
        "2:freeze(1s)@100, 2:throws@100, 2:killed@100; in a simulation also slow, break, delay, "
        "silence, partition, slow-link and stop-clock, see docs/simulator.md; none removes the "
        "faults of the scenario; can be repeated");
  stop @16 :Stop $help("when the run ends: at the first of these limits");
  evaluateEvery @17 :Float64 = 1 $range(Range.evaluateEvery) $flag("--evaluate-every")
    $help("epochs between evaluations on the test set; 0: only at the end");
  augment @18 :Augment $flag("--augment")
    $help("random augmentation of the training images, redrawn in each epoch")
    $values("flip, shift=2 (by up to 2 pixels), both with a comma between, or none");
  device @19 :Text = "cpu" $flag("--device")
    $help("where to compute: cpu, cuda or cuda:1 for all, or a list such as "
        "workers=cuda,worker3=cpu,shards=cuda:0");
  initFrom @20 :Text $flag("--init")
    $help("safetensors file with the initial weights; empty: drawn from the seed");
  balance @21 :Balance $flag("--balance") $help("samples per iteration of each worker")
    $values("equal (the batch) or speed (in proportion to the worker's speed, on average the "
        "batch)");
  pipeline @23 :StagesOfModel $help("workers that train one model together, as its stages");
  checkpoints @24 :Saved.Checkpoints $flag("--checkpoint-every") $help("interval of checkpoints")
    $values("30s, 10min, 2h, 2ep (epochs), 500it (iterations of all workers) or none");
  host @22 :Host $name("simulated") $help("where the actors run");
}

struct StagesOfModel $name("Pipeline") {
  # Workers 0 to stages - 1 are the stages of the first pipeline, and so on.
  stages @0 :UInt32 = 1 $range(least = 1, most = Range.maxStages) $flag("--stages")
    $help("stages per pipeline, one worker each; 1: every worker trains the whole model");
  schedule @1 :Text = "1f1b" $flag("--schedule")
    $help("order of a stage's forward and backward passes, as `leeway schedule` lists them");
  chunks @2 :UInt32 = 1 $range(least = 1, most = Range.maxChunks) $flag("--chunks")
    $help("chunks of the model on each stage");
  split @3 :Text $flag("--split")
    $help("first and last layer of each chunk, such as 0-3,4-7, as `leeway partition` prints it; "
        "empty: by the cost of the layers")
    $values("0-3,4-7, or none");
  recompute @4 :List(UInt32) $limit("kMaxStages") $flag("--recompute")
    $help("stages that keep only their inputs and recompute activations before backward")
    $values("all, none, or stages such as 0,2");
}

struct DataSource {
  union {
    fashionMnist @0 :Directory
      $help("Fashion-MNIST (Xiao et al. 2017): images of 1x28x28, 10 classes");
    idx @1 :Idx $help("plain or gzipped IDX files; pixels become (value / 255 - mean) / deviation");
    csv @2 :Csv $help("files with a header line, numbers and one named label column");
    synthetic @3 :Synthetic $help("samples drawn from the seed");
    custom @4 :Custom $help("a data set of the scenario program");
    text @5 :TextCorpus $help("text, whose characters are predicted from the preceding ones");
  }
  struct Directory $name("FashionMnist") {
    directory @0 :Text = "/usr/share/datasets/fashion-mnist"
      $notEmpty("the folder of the four files") $help("folder of the four files");
  }
  struct Idx {
    trainImages @0 :Text $notEmpty("the path of the file") $help("file of the training images");
    trainLabels @1 :Text $notEmpty("the path of the file") $help("file of the training labels");
    testImages @2 :Text $notEmpty("the path of the file") $help("file of the test images");
    testLabels @3 :Text $notEmpty("the path of the file") $help("file of the test labels");
  }
  struct Csv {
    train @0 :Text $notEmpty("the path of the file") $help("training file");
    test @1 :Text $help("test file; empty: a seeded share of the training rows is set aside");
    label @2 :Text = "label" $notEmpty("the name of the label column") $help("column to predict");
    regression @3 :Bool $help("the label is a number; otherwise it is a class, from 0");
    testShare @4 :Float64 = 0.2 $range(Range.testShare)
      $help("share of the rows that is set aside for tests");
    normalize @5 :Bool = true
      $help("features to mean 0 and deviation 1, by the training rows");
  }
  struct Synthetic {
    samples @0 :UInt32 = 10000 $range(Range.atLeastOne) $help("training samples");
    testSamples @1 :UInt32 = 1000 $range(Range.atLeastOne) $help("test samples");
    union {
      line :group $help("y = slope * x + intercept + noise * N(0, 1), x uniform in [-1, 1)") {
        slope @2 :Float64 = 3 $help("slope of the line");
        intercept @3 :Float64 = 2 $help("y at x = 0");
        noise @4 :Float64 = 0.1 $range(Range.notNegative) $help("standard deviation of the noise");
      }
      clusters :group $help("one Gaussian cluster for each class, its center on a sphere") {
        classes @5 :UInt32 = 10 $range(least = 2, most = 1048576) $help("number of classes");
        features @6 :UInt32 = 32 $range(least = 1, most = 1048576) $help("features per sample");
        spread @7 :Float64 = 3 $range(Range.notNegative) $help("radius of the sphere");
      }
    }
  }
  struct Custom $name("CustomData") {
    name @0 :Text $notEmpty("the name that the data set is registered with")
      $help("name that the data set is registered with");
  }
  struct TextCorpus {           # each character by its number in the vocabulary of the text
    file @0 :Text $help("UTF-8 file; empty: the King James Bible of Debian's bible-kjv");
    context @1 :UInt32 = 64 $range(least = 1, most = 1048576) $help("characters per sample");
    testShare @2 :Float64 = 0.1 $range(Range.testShare)
      $help("share at the end of the text that is set aside for tests");
  }
}

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
    gelu @9 :Void $help("x * Phi(x), by the tanh formula");
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

struct Augment {
  flip @0 :Bool $help("mirrors an image left to right, with probability 1/2");
  shift @1 :UInt32 $range(least = 0, most = 999)
    $help("maximum shift of an image in pixels, each way");
}

struct Optimizer {
  learningRate @0 :Float64 = 0.1 $range(Range.learningRate) $flag("--lr") $help("learning rate");
  weightDecay @1 :Float64 $range(Range.weightDecay) $flag("--weight-decay")
    $help("L2 coefficient; decoupled from the gradient for adamw");
  union {
    sgd @2 :Void $help("plain gradient descent");
    momentum @3 :Momentum $help("gradient descent with a velocity");
    nesterov @4 :Momentum $name("Nesterov") $help("momentum that looks one step ahead");
    adam @5 :Adam $help("steps scaled by running moments of the gradient");
    adamw @6 :Adam $name("AdamW") $help("adam with decoupled weight decay");
    adagrad @7 :AdaGrad $help("steps scaled by the sum of all squared gradients");
  }
  struct Momentum {
    factor @0 :Float64 = 0.9 $range(Range.belowOne) $help("share of the velocity that is kept");
  }
  struct Adam {
    beta1 @0 :Float64 = 0.9 $range(Range.belowOne) $help("decay of the first moment");
    beta2 @1 :Float64 = 0.999 $range(Range.belowOne) $help("decay of the second moment");
    epsilon @2 :Float64 = 1e-8 $range(Range.aboveZero) $help("added to the second moment's root");
  }
  struct AdaGrad {
    epsilon @0 :Float64 = 1e-10 $range(Range.aboveZero) $help("added to the root of the sum");
  }
}

struct LrSchedule {
  warmup @0 :Float64 $range(least = 0, give = "0 or more epochs") $flag("--warmup")
    $help("epochs over which the learning rate rises linearly to its full value");
  union {
    constant @1 :Void $help("the full learning rate throughout");
    step :group $help("drops by a factor at regular intervals") {
      every @2 :Float64 = 10 $range(above = 0, give = "more than 0 epochs")
        $help("epochs from one drop to the next");
      factor @3 :Float64 = 0.1 $range(Range.aboveZero) $help("factor of each drop");
    }
    cosine :group $help("half a cosine from the full rate down to a floor at the last epoch") {
      floor @4 :Float64 $range(Range.share) $help("share of the full rate at the end");
    }
  }
}

struct Consistency {
  union {
    bsp @0 :Void $help("a barrier at each iteration; equals one worker with all batches together");
    ssp :group $help("workers run ahead of the slowest by at most the staleness bound") {
      staleness @1 :UInt32 = 3 $help("staleness bound");
    }
    asp @2 :Void $help("no worker ever waits");
    backup :group
        $help("a barrier that does not wait for the last few workers, and drops their pushes") {
      spare @3 :UInt32 = 1 $help("workers that a round does not wait for");
    }
    adaptive :group $help("ssp with a bound that follows the waiting times of the workers") {
      low @4 :UInt32 = 1 $help("smallest bound");
      high @5 :UInt32 = 8 $help("largest bound");
    }
  }
}

enum Balance {
  equal @0 $help("the batch for every worker");
  bySpeed @1 $help("in proportion to the worker's measured speed, with an unchanged total");
}

struct Host $Cpp.optional {
  union {
    local @0 :Void $help("threads of this process, or nodes of a cluster");
    simulated @1 :World $flag("--simulate") $help("virtual time, in a world of machines and links");
  }
}

struct World {
  nodes @0 :Nodes $help("which actors share a node");
  cores @1 :UInt32 = 1 $range(least = 1, most = 4096)
    $help("cores per node; excess computations wait");
  speed @2 :Float64 = 50 $range(Range.gigaflops)
    $help("GFLOP/s per core, counting multiplications and additions");
  memory @3 :Float64 = 20 $range(Range.gigabytes) $help("GB/s between a core and memory");
  noise @4 :Float64 = 0.05 $range(Range.noise) $help("relative variation of a computation's time");
  latencyUs @5 :Float64 = 50 $range(Range.microseconds)
    $help("one-way latency between two nodes, in microseconds");
  localLatencyUs @6 :Float64 = 5 $range(Range.microseconds)
    $help("latency within a node, in microseconds");
  jitter @7 :Float64 = 0.2 $range(Range.jitter) $help("maximum extra latency, as a share of it");
  link @8 :Float64 = 10 $range(Range.link) $help("Gbit/s of a node's link, each way; 0: no limit");
  detectionMs @9 :Float64 = 200 $range(Range.detection)
    $help("milliseconds until watchers are notified of the end of an actor");
  costOnly @10 :Bool $flag("--gradients") $values("real or none")
    $help("compute no gradients, to study only protocol and time");
  # Threads of the nodes. With 0, only computations take time.
  messageUs @11 :Float64 $range(Range.microseconds)
    $help("core time per message, in microseconds; 0: threads are not simulated");
  timerUs @12 :Float64 $range(Range.microseconds) $help("delay of timers, in microseconds");
  sliceUs @13 :Float64 $range(Range.microseconds)
    $help("time slice of a thread while others wait for a core, in microseconds; 0: until it "
        "finishes");
  contention @14 :Float64 $range(Range.contention)
    $help("relative slowdown when all cores of the node are busy");
  cold @15 :Float64 $range(Range.cold)
    $help("relative slowdown after the thread has been idle for long");

  enum Nodes {
    each @0 $help("each worker and each shard has a node; scheduler and monitor share one");
    one @1 $help("all actors share one node, as in one process");
  }
}

struct Straggler {              # several on one worker: factors multiply, pauses add
  worker @0 :UInt32 $help("worker that is slowed down");
  all @1 :Bool $help("slow every worker instead, each by separate random numbers");
  union {
    factor @2 :Float64 = 4 $range(Range.slowdown) $name("ConstantFactor")
      $help("slowdown factor of every iteration");
    bursts @3 :Bursts $help("slow in random bursts");
    pareto @4 :Pareto $help("a factor drawn for each iteration, above x with probability x^-alpha");
    pauses @5 :Pauses $help("pauses at regular intervals, like a garbage collector");
    decay @6 :Decay $help("slows down gradually and stays slow");
    sharing @7 :Sharing $help("alternates between slow and normal, like a noisy neighbour");
    trace @8 :Trace $help("factors from a file");
  }
  struct Bursts {
    factor @0 :Float64 = 4 $range(Range.slowdown) $help("slowdown factor in a burst");
    share @1 :Float64 = 0.2 $range(Range.shareOfIterations)
      $help("share of the iterations that are slow");
    length @2 :UInt32 = 50 $range(Range.iterations) $help("iterations per burst, on average");
  }
  struct Pareto {
    alpha @0 :Float64 = 1.5 $range(Range.tail) $help("exponent: the smaller, the heavier the tail");
    cap @1 :Float64 = 100 $range(Range.slowdown) $help("largest factor");
  }
  struct Pauses $Cpp.union("every") {
    lengthMs @0 :Float64 = 200 $range(Range.pause) $help("length of a pause, in milliseconds");
    union {
      iterations @1 :UInt32 = 50 $range(Range.iterations) $help("iterations from pause to pause");
      seconds @2 :Float64 = 1 $range(Range.pauseEvery)
        $help("seconds from pause to pause, by the host's clock");
    }
  }
  struct Decay {
    factor @0 :Float64 = 4 $range(Range.slowdown) $help("final slowdown factor");
    iterations @1 :UInt32 = 1000 $range(Range.iterations) $help("iterations until the full factor");
  }
  struct Sharing {
    factor @0 :Float64 = 4 $range(Range.slowdown) $help("slowdown factor while it is slow");
    on @1 :UInt32 = 100 $range(Range.iterations) $help("iterations in which it is slow");
    off @2 :UInt32 = 300 $range(Range.iterations) $help("iterations in which it is not");
  }
  struct Trace {
    file @0 :Text $notEmpty("the path of the file")
      $help("file with one factor per line; repeats after the last line");
  }
}

struct Fault {
  actor @0 :Text = "worker0" $type(.actor) $initially("RoleKind::worker, 0")
    $help("worker2, shard0 or scheduler");
  at :union $type(name = "plan::FaultTime") $help("when the fault begins") {
    iteration @1 :Int64 $range(Range.iteration)
      $help("when the actor begins it; for shards and the scheduler, when any worker does");
    seconds @2 :Float64 $range(least = 0, most = 31536000, give = "0 or more, up to a year")
      $help("seconds, by the host's clock");
  }
  spread @3 :Float64 $range(least = 0, most = 1e9, give = "0 or more")
    $help("maximum delay of the beginning in iterations or seconds, drawn from the seed");
  union {
    throws @4 :Void $help("the computation throws, and the iteration is not pushed");
    killed @5 :Void
      $help("ends after the first push of the iteration, a partial push if there are more");
    crash @6 :Crash $help("ends at once");
    joins @7 :Void $help("joins the run at this time");
    freeze @8 :Lasting $name("Freeze") $help("does nothing for a while, like a stopped process");
    slow @9 :Slow $help("handles every message with a delay");
    breaks @10 :Link $name("Breaks")
      $help("the connection to a peer breaks and is re-established; messages in flight are lost");
    delay @11 :Delay $help("messages to and from a peer take longer");
    silence @12 :Link $name("Silence")
      $help("messages to the peer are lost; messages from it arrive");
    partition @13 :Partition $help("no message enters or leaves its side");
    slowLink @14 :SlowLink $help("the link of its node is slower");
    clockStops @15 :Lasting $name("ClockStops") $help("the clock of its node stops");
    leaves @16 :Void $help("finishes its iteration and leaves the run");
  }
  struct Crash {
    back @0 :Float64 $range(Range.restart) $help("seconds until it is restarted; 0: never");
  }
  struct Lasting {
    seconds @0 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Slow {
    delayMs @0 :Float64 = 5 $range(Range.delay) $help("milliseconds added to each message");
    seconds @1 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Link {
    peer @0 :Text = "shard0" $type(.actor)
      $initially("RoleKind::shard, 0") $help("actor at the other end");
    seconds @1 :Float64 = 0.1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Delay {
    peer @0 :Text = "shard0" $type(.actor)
      $initially("RoleKind::shard, 0") $help("actor at the other end");
    delayMs @1 :Float64 = 5 $range(Range.delay) $help("milliseconds added to each message");
    seconds @2 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct Partition {
    with @0 :List(Text) $type(.actor) $limit("kMaxWorkers") $help("actors on the same side");
    seconds @1 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
  struct SlowLink {
    factor @0 :Float64 = 10 $range(least = 1, most = 1e6, give = "a factor from 1 to 1000000")
      $help("slowdown factor");
    seconds @1 :Float64 = 1 $range(Range.lasting) $help("duration in seconds");
  }
}

struct Stop {
  epochs @0 :Float64 = 10 $range(Range.epochs) $flag("--epochs")
    $help("passes over the training data, may be a fraction; 0: no limit");
  iterations @1 :UInt64 $flag("--iterations")
    $help("iterations of all workers together, or of all pipelines; 0: no limit");
  seconds @2 :Float64 $range(Range.notNegative) $flag("--seconds") $help("seconds; 0: no limit");
  accuracy @3 :Float64 $range(Range.share) $flag("--until-accuracy")
    $help("test accuracy, 0 to 1; 0 disables it");
}
