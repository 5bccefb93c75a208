@0xd3a9f1c27b5e4a10;
# What a run is: everything that decides its outcome, and nothing else. A scenario program builds one, a TOML or JSON
# file is mapped onto it field by field, a cluster ships it to its nodes, and the run folder keeps it.
#
# In text, field names are snake_case; a union is a table with one key, the arm's name (`consistency.ssp.staleness = 3`), and
# an arm without fields may be written as its bare name (`consistency = "bsp"`).

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema"); # apart from the conversations, which have a Stop of their own

struct Plan {
  name @0 :Text = "unnamed";
  seed @1 :UInt64 = 1;          # all randomness of the run comes from it
  data @2 :DataSource;
  model @3 :List(Layer);
  loss @4 :Loss;
  optimizer @5 :Optimizer;
  schedule @6 :Schedule;
  consistency @7 :Consistency;
  workers @8 :UInt32 = 4;
  shards @9 :UInt32 = 2;
  batch @10 :UInt32 = 64;       # samples of one worker's iteration
  microBatches @11 :UInt32 = 1; # an iteration's batch is computed in this many pieces, their gradients summed
  prefetch @12 :Bool;           # pull the weights of the next iteration while this one computes; costs one unit of leeway
  chunk @13 :UInt32;            # samples of one lease; 0: eight batches
  stragglers @14 :List(Straggler);
  faults @15 :List(Fault);
  stop @16 :Stop;
  evaluateEvery @17 :Float64 = 1; # epochs between two evaluations on the test set; 0: only at the end
  augment @18 :Augment;
  device @19 :Text = "cpu";     # "cpu", "cuda" or "cuda:1" for all, or a list: "workers=cuda,worker3=cpu,shards=cuda:0"
  initFrom @20 :Text;           # safetensors file of the weights to start from; empty: drawn from the seed
  balance @21 :Balance;
  host @22 :Host;
  pipeline @23 :StagesOfModel;
}

struct StagesOfModel {
  # Workers that train one model together, each a part of it: the workers 0 to stages - 1 are the stages of the first pipeline, and so
  # on.
  stages @0 :UInt32 = 1;        # of each pipeline; 1: every worker trains the whole model
  schedule @1 :Text = "1f1b";   # what a stage does next: `leeway schedule` lists them
  chunks @2 :UInt32 = 1;        # parts of the model on each stage
  split @3 :Text;               # "0-3,4-7": first and last layer of each part, as `leeway partition` prints it; empty: by what layers cost
  recompute @4 :List(UInt32);   # stages that keep their inputs alone, and run forward again before backward
}

struct DataSource {
  union {
    fashionMnist @0 :Directory;
    idx @1 :Idx;
    csv @2 :Csv;
    synthetic @3 :Synthetic;
    custom @4 :Custom;          # a data set that the scenario program brings along
    text @5 :TextCorpus;           # characters, each to be told from those before it
  }
  struct Directory {
    directory @0 :Text = "/usr/share/datasets/fashion-mnist";
  }
  struct Idx {                  # gzipped or plain IDX files; pixels become (value / 255 - mean) / deviation
    trainImages @0 :Text;
    trainLabels @1 :Text;
    testImages @2 :Text;
    testLabels @3 :Text;
  }
  struct Csv {                  # a header line, numbers, one named label column
    train @0 :Text;
    test @1 :Text;              # empty: a seeded share of the rows of `train` is set aside
    label @2 :Text = "label";
    regression @3 :Bool;        # the label is a number to predict; otherwise the number of a class, from 0
    testShare @4 :Float64 = 0.2;
    normalize @5 :Bool = true;  # features to mean 0 and deviation 1, by the training rows
  }
  struct Synthetic {
    samples @0 :UInt32 = 10000;
    testSamples @1 :UInt32 = 1000;
    union {
      line :group {             # y = slope * x + intercept + noise * N(0, 1), x uniform in [-1, 1)
        slope @2 :Float64 = 3;
        intercept @3 :Float64 = 2;
        noise @4 :Float64 = 0.1;
      }
      clusters :group {         # one Gaussian cluster a class, centers on a sphere of radius `spread`
        classes @5 :UInt32 = 10;
        features @6 :UInt32 = 32;
        spread @7 :Float64 = 3;
      }
    }
  }
  struct Custom {
    name @0 :Text;
  }
  struct TextCorpus {              # its characters, each by its number in a vocabulary of those that occur
    file @0 :Text;              # UTF-8; empty: the King James Bible, as Debian's bible-kjv has it
    context @1 :UInt32 = 64;    # characters of a sample
    testShare @2 :Float64 = 0.1; # the text's last part is set aside
  }
}

struct Layer {
  union {
    linear @0 :Linear;
    relu @1 :Void;
    flatten @2 :Void;
    custom @3 :Custom;          # a layer that the scenario program registered
    conv2d @4 :Conv2d;
    maxPool2d @5 :MaxPool2d;
    avgPool2d @6 :AvgPool2d;
    batchNorm @7 :BatchNorm;    # over batch, height and width, or over the batch alone for flat samples
    layerNorm @8 :LayerNorm;    # over the last axis
    gelu @9 :Void;
    tanh @10 :Void;
    sigmoid @11 :Void;
    dropout @12 :Dropout;
    embedding @13 :Embedding;
    residual @14 :Residual;
    positions @15 :Positions;   # adds a learned row of features for each place in a sequence
    attention @16 :Attention;
    unembedding @17 :Void;      # a number for each token: how well its row of the embedding before fits
  }
  struct Linear {
    outputs @0 :UInt32;
    init @1 :Init;
    bias @2 :Bool = true;
    deviation @3 :Float64 = 0.01; # standard deviation of `init`, where that is normal
  }
  struct Conv2d {               # square kernels over images of channels x height x width
    outputs @0 :UInt32;         # channels that come out
    kernel @1 :UInt32 = 3;
    stride @2 :UInt32 = 1;
    padding @3 :UInt32;         # zeros around the image
    groups @4 :UInt32 = 1;      # each sees its share of the channels alone
    bias @5 :Bool = true;
    init @6 :Init;
  }
  struct MaxPool2d {
    kernel @0 :UInt32 = 2;
    stride @1 :UInt32 = 2;
    padding @2 :UInt32;
  }
  struct AvgPool2d {
    kernel @0 :UInt32 = 2;      # 0: the whole image
    stride @1 :UInt32 = 2;
    padding @2 :UInt32;
  }
  struct BatchNorm {
    epsilon @0 :Float64 = 1e-5;
    momentum @1 :Float64 = 0.1; # share of the newest batch in the statistics that evaluation uses
  }
  struct LayerNorm {
    epsilon @0 :Float64 = 1e-5;
  }
  struct Dropout {
    probability @0 :Float64 = 0.5; # of a number to become zero
  }
  struct Embedding {            # a row of features for each token number
    vocabulary @0 :UInt32;      # 0: as many as the data has classes, for text
    features @1 :UInt32;
    init @2 :Init = normal;
    deviation @3 :Float64 = 0.01;
  }
  struct Positions {
    init @0 :Init = normal;
    deviation @1 :Float64 = 0.01;
  }
  struct Attention {            # of queries, keys and values side by side; no token sees a later one
    heads @0 :UInt32 = 4;       # each with its share of the features
  }
  struct Residual {             # y = body(x) + shortcut(x)
    body @0 :List(Layer);
    shortcut @1 :List(Layer);   # empty: x itself
  }
  struct Custom {
    name @0 :Text;
    arguments @1 :Text;
  }
}

enum Init { he @0; xavier @1; normal @2; zeros @3; ones @4; }

enum Loss {
  softmaxCrossEntropy @0;       # of classes
  meanSquaredError @1;          # of numbers
  sigmoidCrossEntropy @2;       # of numbers in 0..1, or of two classes: the answers to yes-or-no questions
}

struct Augment {                # what is done at random to images while training, anew in each epoch
  flip @0 :Bool;                # left to right, every other time
  shift @1 :UInt32;             # by up to so many pixels, each way; what comes in is background
}

struct Optimizer {
  learningRate @0 :Float64 = 0.1;
  weightDecay @1 :Float64;      # L2 coefficient lambda; decoupled from the gradient for adamw
  union {
    sgd @2 :Void;
    momentum @3 :Momentum;
    nesterov @4 :Momentum;
    adam @5 :Adam;
    adamw @6 :Adam;
    adagrad @7 :AdaGrad;
  }
  struct Momentum {
    factor @0 :Float64 = 0.9;
  }
  struct Adam {
    beta1 @0 :Float64 = 0.9;
    beta2 @1 :Float64 = 0.999;
    epsilon @2 :Float64 = 1e-8;
  }
  struct AdaGrad {
    epsilon @0 :Float64 = 1e-10;
  }
}

struct Schedule {               # of the learning rate; time is counted in epochs
  warmup @0 :Float64;           # epochs over which the rate rises linearly to its full value
  union {
    constant @1 :Void;
    step :group {               # times `factor` every `every` epochs
      every @2 :Float64 = 10;
      factor @3 :Float64 = 0.1;
    }
    cosine :group {             # from the full rate to `floor` times it, at the last epoch
      floor @4 :Float64;
    }
  }
}

struct Consistency {
  union {
    bsp @0 :Void;
    ssp :group {
      staleness @1 :UInt32 = 3;
    }
    asp @2 :Void;
    backup :group {             # a round takes the first pushes of all workers but so many, and drops the late ones
      spare @3 :UInt32 = 1;
    }
    adaptive :group {           # a staleness that the scheduler moves between two bounds, by how much the workers wait
      low @4 :UInt32 = 1;
      high @5 :UInt32 = 8;
    }
  }
}

enum Balance {                  # how many samples an iteration of each worker has
  equal @0;                     # the batch
  bySpeed @1;                   # by its measured speed; their sum stays
}

struct Host {                   # where the actors live
  union {
    local @0 :Void;             # on threads of this process
    simulated @1 :World;        # in virtual time
  }
}

struct World {                  # the machines and the network of a simulated run
  nodes @0 :Nodes;
  cores @1 :UInt32 = 1;         # of each node; computations beyond wait for one
  speed @2 :Float64 = 50;       # GFLOP/s of one core, multiplications and additions
  memory @3 :Float64 = 20;      # GB/s that one core moves to and from memory
  noise @4 :Float64 = 0.05;     # a computation takes 1 - noise to 1 + noise times its time
  latencyUs @5 :Float64 = 50;   # of a message between two nodes, one way
  localLatencyUs @6 :Float64 = 5; # within a node
  jitter @7 :Float64 = 0.2;     # latency varies by this share of itself, upwards
  link @8 :Float64 = 10;        # Gbit/s of each node's link, each way; 0: no limit
  detectionMs @9 :Float64 = 200; # until watchers are told that an actor has ended, or cannot be reached
  costOnly @10 :Bool;           # nothing is computed and all gradients are zero: for studies of protocol and time
  # Threads of the nodes. 0: actors take no time but for what they compute.
  messageUs @11 :Float64;       # time of a core that an actor takes for each message, one after the other
  timerUs @12 :Float64;         # by how much a timer rings late
  sliceUs @13 :Float64;         # how long a thread keeps its core when others wait for one; 0: until it has done
  contention @14 :Float64;      # by how much all is slower when all cores of a node are busy, as they share its memory
  cold @15 :Float64;            # by how much what a thread does after a long rest is slower

  enum Nodes {
    each @0;                    # every worker and every shard has a node of its own; scheduler and monitor share one
    one @1;                     # all actors share one node, like those of this process
  }
}

struct Straggler {              # slows `worker` down; where several do, their factors multiply and their pauses add
  worker @0 :UInt32;
  all @1 :Bool;                 # every worker instead, each with chances of its own
  union {
    factor @2 :Float64 = 4;     # always so many times as long
    bursts @3 :Bursts;
    pareto @4 :Pareto;
    pauses @5 :Pauses;
    decay @6 :Decay;
    sharing @7 :Sharing;
    trace @8 :Trace;
  }
  struct Bursts {               # `factor` in random bursts
    factor @0 :Float64 = 4;
    share @1 :Float64 = 0.2;    # of all iterations
    length @2 :UInt32 = 50;     # mean, in iterations
  }
  struct Pareto {               # a factor drawn for each iteration, above x with probability x^-alpha: at times very large
    alpha @0 :Float64 = 1.5;
    cap @1 :Float64 = 100;      # the largest factor
  }
  struct Pauses {               # stands still at regular intervals, as for a garbage collection
    lengthMs @0 :Float64 = 200;
    union {                     # from one pause to the next
      iterations @1 :UInt32 = 50;
      seconds @2 :Float64 = 1;  # by the host's clock
    }
  }
  struct Decay {                # from 1 evenly up to `factor`, and so it stays
    factor @0 :Float64 = 4;
    iterations @1 :UInt32 = 1000;
  }
  struct Sharing {              # `factor` for `on` iterations, none for `off`, and again: a neighbour on the machine
    factor @0 :Float64 = 4;
    on @1 :UInt32 = 100;
    off @2 :UInt32 = 300;
  }
  struct Trace {                # the factors of a file, one a line, from the first again after the last
    file @0 :Text;
  }
}

struct Fault {                  # what befalls an actor, and when
  actor @0 :Text = "worker0";   # "worker2", "shard0" or "scheduler"
  at :union {                   # when it begins
    iteration @1 :Int64;        # as the actor begins this iteration; any worker, where the actor is none
    seconds @2 :Float64;        # by the host's clock
  }
  spread @3 :Float64;           # later by up to so many iterations or seconds, drawn from the seed
  union {
    throws @4 :Void;            # the computation of the iteration throws; nothing of it has been pushed
    killed @5 :Void;            # ends without a word after the first push of the iteration: a partial push when there are more
    crash @6 :Crash;            # ends, wherever it is
    joins @7 :Void;             # is not there before
    freeze @8 :Lasting;         # does nothing, as if its process had been stopped, and goes on
    slow @9 :Slow;              # handles every message so much later
    breaks @10 :Link;           # the connection to a peer ends and is made again after `seconds`: what is on its way is lost
    delay @11 :Delay;           # messages to and from a peer take longer
    silence @12 :Link;          # nothing reaches the peer, while the peer is heard
    partition @13 :Partition;   # nothing gets in or out
    slowLink @14 :SlowLink;     # the link of its node is slower
    clockStops @15 :Lasting;    # the clock of its node stands still
    leaves @16 :Void;           # finishes its iteration and takes part no longer
  }
  struct Crash {
    back @0 :Float64;           # seconds until it is started again; 0: never
  }
  struct Lasting {
    seconds @0 :Float64 = 1;
  }
  struct Slow {
    delayMs @0 :Float64 = 5;
    seconds @1 :Float64 = 1;
  }
  struct Link {
    peer @0 :Text = "shard0";
    seconds @1 :Float64 = 0.1;
  }
  struct Delay {
    peer @0 :Text = "shard0";
    delayMs @1 :Float64 = 5;
    seconds @2 :Float64 = 1;
  }
  struct Partition {
    with @0 :List(Text);        # actors on the same side
    seconds @1 :Float64 = 1;
  }
  struct SlowLink {
    factor @0 :Float64 = 10;
    seconds @1 :Float64 = 1;
  }
}

struct Stop {                   # whichever comes first; 0: no such limit
  epochs @0 :Float64 = 10;
  iterations @1 :UInt64;        # of all workers together
  seconds @2 :Float64;
  accuracy @3 :Float64;         # on the test set, in 0..1
}
