@0xc47e0b93d8f2a516;
# How gradients change the weights, and how far workers may be apart.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");
$Cpp.flat;
$Cpp.stem("training");
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using import "/plan/annotations.capnp".flag;
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".notEmpty;
using import "/plan/annotations.capnp".range;
using import "/messages/generator/annotations.capnp".limit;
using import "/plan/annotations.capnp".values;
using import "/messages/generator/annotations.capnp".name;

struct Optimizer {
  learningRate @0 :Float64 = 0.1 $range(Range.learningRate) $flag("--lr") $help("learning rate");
  weightDecay @1 :Float64 $range(Range.weightDecay) $flag("--weight-decay")
    $help("L2 coefficient; decoupled from the gradient for adamw");
  union {
    sgd @2 :Void $help("plain gradient descent");
    momentum @3 :Momentum $help("gradient descent with a velocity");
    nesterov @4 :Nesterov $help("momentum that looks one step ahead");
    adam @5 :Adam $help("steps scaled by running moments of the gradient");
    adamw @6 :Adam $name("AdamW") $help("adam with decoupled weight decay");
    adagrad @7 :AdaGrad $help("steps scaled by the sum of all squared gradients");
    sum @12 :Void $help("adds the sum of the workers' gradients, without a learning rate");
    assign @13 :Void $help("replaces the weights by the sum of the workers' gradients");
    nadam @17 :NAdam $name("NAdam") $help("adam that looks one step ahead");
    lion @18 :Lion $help("steps of one size along the sign of a momentum");
    delayedNesterov @19 :DelayedNesterov
      $help("descent by each push, with a velocity that moves once in some rounds");
    muon @20 :Muon $help("orthogonal steps of weight matrices, adamw for the rest; on CPUs");
    updater @14 :Updater $help("a function that the program has registered, as updater(NAME)");
  }
  noDecayOnBiases @8 :Bool $flag("--no-decay-on-biases")
    $help("no weight decay for biases and for the scales and shifts of norms");
  clipValue @9 :Float64 $range(Range.clip) $flag("--clip-value")
    $help("largest absolute value of an element of a gradient; 0: no limit");
  clipNorm @10 :Float64 $range(Range.clip) $flag("--clip-norm")
    $help("largest norm of a gradient over all parameters: that of a round under bsp, backup and "
        "quorum, otherwise, and with top_k or random_k, that of each push; 0: no limit");
  eightBitState @15 :Bool $flag("--eight-bit-state")
    $help("keep the optimizer's state in 8 bits instead of 32; on CPUs, and not for adagrad");
  wholeSteps @16 :Bool $flag("--whole-steps")
    $help("each push that is applied on arrival is a whole step, as in published asynchronous "
        "methods, instead of its share of the samples of a round");
  groups @11 :List(ParameterGroup) $limit("kMaxParameterGroups")
    $help("parameters with another learning rate or weight decay; the first match counts");
  struct Updater {
    name @0 :Text $help("name under which the program has registered the function");
  }
  struct Momentum {
    factor @0 :Float64 = 0.9 $range(Range.belowOne) $help("share of the velocity that is kept");
    dampening @1 :Float64 $range(Range.share)
      $help("share of a gradient that does not enter the velocity; the first enters whole");
  }
  struct Nesterov {
    factor @0 :Float64 = 0.9 $range(Range.belowOne) $help("share of the velocity that is kept");
  }
  struct DelayedNesterov {
    factor @0 :Float64 = 0.9 $range(Range.belowOne) $help("share of the velocity that is kept");
    rounds @1 :UInt32 = 1 $range(least = 1, most = 1048576)
      $help("rounds between two moves of the velocity");
  }
  struct Adam {
    beta1 @0 :Float64 = 0.9 $range(Range.belowOne) $help("decay of the first moment");
    beta2 @1 :Float64 = 0.999 $range(Range.belowOne) $help("decay of the second moment");
    epsilon @2 :Float64 = 1e-8 $range(Range.aboveZero) $help("added to the second moment's root");
    amsgrad @3 :Bool $help("divide by the largest second moment so far (Reddi et al. 2018)");
  }
  struct NAdam {
    beta1 @0 :Float64 = 0.9 $range(Range.belowOne) $help("decay of the first moment");
    beta2 @1 :Float64 = 0.999 $range(Range.belowOne) $help("decay of the second moment");
    epsilon @2 :Float64 = 1e-8 $range(Range.aboveZero) $help("added to the second moment's root");
    momentumDecay @3 :Float64 = 0.004 $range(Range.share)
      $help("how fast the momentum rises from half of beta1 to beta1");
    decoupled @4 :Bool = true $help("decay weights apart from the gradient, as adamw does");
  }
  struct Lion {
    beta1 @0 :Float64 = 0.9 $range(Range.belowOne)
      $help("share of the momentum in the sum whose sign is a step");
    beta2 @1 :Float64 = 0.99 $range(Range.belowOne) $help("decay of the momentum");
  }
  struct Muon {
    factor @0 :Float64 = 0.95 $range(Range.belowOne) $help("share of the velocity that is kept");
    beta1 @1 :Float64 = 0.9 $range(Range.belowOne) $help("beta1 of adamw for the rest");
    beta2 @2 :Float64 = 0.999 $range(Range.belowOne) $help("beta2 of adamw for the rest");
    epsilon @3 :Float64 = 1e-8 $range(Range.aboveZero) $help("epsilon of adamw for the rest");
  }
  struct AdaGrad {
    epsilon @0 :Float64 = 1e-10 $range(Range.aboveZero) $help("added to the root of the sum");
    initial @1 :Float64 $range(Range.notNegative) $help("the sum at the start");
  }
}

struct ParameterGroup {
  names @0 :Text $notEmpty("names such as 0.*,*.bias")
    $help("names of parameters, with * for any letters and ? for one, separated by commas");
  rate @1 :Float64 = 1 $range(Range.factor) $help("factor of the learning rate; 0: not trained");
  decay @2 :Float64 = 1 $range(Range.factor) $help("factor of the weight decay");
}

struct LrSchedule {
  warmup @0 :Float64 $range(Range.notNegative) $flag("--warmup")
    $help("epochs over which the learning rate rises linearly to its full value");
  union {
    constant @1 :Void $help("the full learning rate throughout");
    step :group $help("drops by a factor at regular intervals") {
      every @2 :Float64 = 10 $range(least = 1e-6, most = 1e9)
        $help("epochs from one drop to the next");
      factor @3 :Float64 = 0.1 $range(above = 0, most = 1) $help("factor of each drop");
    }
    cosine :group $help("half a cosine from the full rate down to a floor at the last epoch") {
      floor @4 :Float64 $range(Range.share) $help("share of the full rate at the end");
      period @5 :Float64 $range(least = 1e-6, most = 1e9, orZero = true)
        $help("epochs until it first restarts at the full rate; 0: no restarts");
      growth @6 :Float64 = 1 $range(Range.growth)
        $help("length of each period as a multiple of the one before");
    }
    linear :group $name("LinearLr")
        $help("a line from the full rate to a floor at the last epoch") {
      floor @7 :Float64 $range(Range.share) $help("share of the full rate at the end");
    }
    exponential :group $name("ExponentialLr") $help("falls by a factor in each epoch") {
      factor @8 :Float64 = 0.95 $range(above = 0, most = 1) $help("factor of an epoch");
    }
    oneCycle :group $help("rises to the full rate and falls below the start, along cosines") {
      rise @9 :Float64 = 0.3 $range(Range.testShare) $help("share of the run in which it rises");
      startDivisor @10 :Float64 = 25 $range(Range.divisor)
        $help("full rate / rate at the start");
      endDivisor @11 :Float64 = 10000 $range(Range.divisor)
        $help("rate at the start / rate at the end");
    }
  }
  warmupStart @12 :Float64 $range(Range.share) $flag("--warmup-start")
    $help("share of the full rate at which the warm-up starts");
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
    quorum :group
        $help("a barrier that waits for some workers and a grace window, and drops later pushes") {
      count @6 :UInt32 = 1 $help("pushes that a round needs");
      graceMs @7 :Float64 $range(least = 0, most = 3.6e6, give = "0 or more, up to an hour")
        $help("how long it then waits for more, in milliseconds");
      mad @8 :Bool
        $help("instead of grace_ms: it waits until the median of recent arrivals plus three median "
            "absolute deviations");
    }
    auto :group $name("Automatic")
        $help("a bound that follows the waiting times from the largest one down, batches by speed, "
            "and ordered momentum") {
      high @9 :UInt32 = 16 $help("largest bound");
    }
  }
}

struct DelayPolicy {
  # How shards apply a push by its lag: the rounds that were applied between the pull of its weights
  # and its own update. In a round all workers train one iteration.
  union {
    plain @0 :Void $name("PlainPush") $help("applies a push in the same way, whatever its lag is");
    lagScaled :group $help("divides a push's step by its lag, if that is above 1") {
      power @1 :Float64 = 1 $range(above = 0, most = 10) $help("power of the lag");
      rounds @13 :Float64 $range(Range.notNegative)
        $help("within which the power falls to 0; 0: it stays");
    }
    delayAdaptive :group $help("limits the product of a push's learning rate and its lag") {
      most @2 :Float64 = 0.1 $range(Range.aboveZero) $help("largest product");
    }
    gapAware :group $help("divides each gradient by its distance in usual steps plus 1") {
      decay @3 :Float64 = 0.999 $range(Range.belowOne)
        $help("decay of the mean that gives the usual step, in a round");
    }
    delayCompensated :group
        $help("adds to each gradient what a second derivative, its square, predicts") {
      lambda @4 :Float64 = 0.04 $range(Range.aboveZero) $help("factor of the prediction");
      adaptive @5 :Bool $help("divide the factor by the root of the mean square gradient");
      decay @6 :Float64 = 0.95 $range(Range.belowOne) $help("decay of this mean, in a round");
    }
    fedAsync :group $help("mixes the worker's model after local steps into the shard's") {
      mixing @8 :Float64 = 0.6 $range(above = 0, most = 1)
        $help("share of the worker's model, for a push of weight 1 without a lag");
      power @9 :Float64 = 0.5 $range(least = 0, most = 10) $help("power of the lag plus 1");
      hinge @14 :Float64 $range(Range.notNegative)
        $help("above 0, instead of the power: a share falls as 1 / (1 + hinge * (lag - within))");
      within @15 :Float64 $range(Range.notNegative)
        $help("largest lag without an effect, with a hinge");
    }
    orderedMomentum @7 :Void
      $help("a push changes the velocity as if it had come in the order of the pulls");
    delayThreshold :group
        $help("a worker whose weights become too old computes its iteration again, with new ones") {
      limit @10 :Float64 = 4 $range(Range.aboveZero) $help("smallest lag that is too old");
    }
    fedBuff :group $help("a number of pushes is one update, in which older ones count less") {
      count @11 :UInt32 = 4 $range(least = 1, most = 1048576) $help("pushes of an update");
      power @12 :Float64 = 0.5 $range(least = 0, most = 10)
        $help("power of 1 plus the number of updates since the pull");
    }
  }
}

struct LocalSteps {
  count @0 :UInt32 $range(least = 0, most = 1048576) $flag("--local-steps")
    $help("optimizer steps that a worker takes on its own copy of the weights, one batch each, "
        "before it pushes the difference; 0: it pushes gradients");
  outer @1 :OuterOptimizer $flag("--outer-optimizer")
    $help("how shards apply what workers push after local steps");
  merge @2 :Merge $flag("--merge")
    $help("how the pseudo-gradients of a round become one");
}

enum Merge {
  mean @0 $help("their mean");
  radialDirectional @1 $help("their mean length along their mean direction");
  bySamples @2 $help("their mean, weighted by the samples that each worker has trained");
}

struct OuterOptimizer {
  # Takes the pseudo-gradient, the weights before local steps minus those after, as a gradient.
  learningRate @0 :Float64 = 1 $range(Range.learningRate) $flag("--outer-lr")
    $help("learning rate of the outer optimizer");
  union {
    average @1 :Void $name("AverageChanges")
      $help("moves the weights to the mean of the workers' copies");
    momentum @2 :Optimizer.Momentum $help("gradient descent with a velocity");
    nesterov @3 :Optimizer.Nesterov $help("momentum that looks one step ahead, as in DiLoCo");
    adam @4 :Optimizer.Adam $help("steps scaled by running moments, as in FedAdam");
    delayedNesterov @5 :Optimizer.DelayedNesterov
      $help("descent by each push, with a velocity that moves once in some rounds");
  }
}

struct Aggregate {
  # The workers of a host group compute one iteration together. Their lead, the first of them,
  # leases the samples, pulls the weights and pushes the sum of all gradients.
  union {
    single @0 :Void $name("NoGroups") $help("each worker pushes its own gradient");
    host @1 :Void $name("HostGroups")
      $help("the workers of a host: a process, or a simulated node");
    workers :group $name("GroupsOf") $help("adjacent workers") {
      count @2 :UInt32 = 2 $range(Range.workers) $help("workers of a group");
    }
  }
}

enum Balance {
  equal @0 $help("the batch for every worker");
  bySpeed @1 $help("in proportion to the worker's measured speed, with an unchanged total");
}

struct FineTuning {
  initMap @0 :Text $flag("--init-map")
    $help("replaces prefixes of the names in the file of the initial weights")
    $values("net.= (removes net.), or encoder.=0. (replaces encoder. by 0.); can be repeated");
  partial @1 :Bool $flag("--init-partial")
    $help("parameters that the file of the initial weights lacks, or has in another shape, stay "
        "random");
  freeze @2 :Text $flag("--freeze")
    $help("layers whose parameters stay as they are; statistics of batch_norm continue")
    $values("0-3, or a list such as 0-3,5, or none");
}
