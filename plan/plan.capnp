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
$Cpp.include("core/expected.hpp");
$Cpp.support("plan/wire.hpp");
using Range = import "/plan/annotations.capnp";
using Compress = import "compression.capnp";
using Data = import "data.capnp";
using Faults = import "faults.capnp";
using Model = import "model.capnp";
using Saved = import "checkpoints.capnp";
using Training = import "training.capnp";
using World = import "world.capnp";
using import "/plan/annotations.capnp".flag;
using import "/plan/annotations.capnp".help;
using import "/plan/annotations.capnp".range;
using import "/plan/annotations.capnp".values;
using import "/messages/generator/annotations.capnp".limit;
using import "/messages/generator/annotations.capnp".name;


struct Plan $Cpp.namespace("leeway")
    $Cpp.root(decode = "decode_plan", kind = "plan", words = true) {
  name @0 :Text = "unnamed" $help("name of the run and of its folder");
  seed @1 :UInt64 = 1 $flag("--seed") $help("seed of all randomness");
  data @2 :Data.DataSource $flag("--data") $help("training and test data")
    $values("the folder of Fashion-MNIST or of images, or a CSV, .npy or text file");
  model @3 :List(Model.Layer) $limit("kMaxBuckets") $help("layers, in order");
  loss @4 :Model.Loss $help("function that training minimises");
  optimizer @5 :Training.Optimizer $flag("--optimizer") $help("how a gradient changes the weights");
  lrSchedule @6 :Training.LrSchedule $flag("--lr-schedule")
    $help("learning rate as a function of the epoch");
  consistency @7 :Training.Consistency $flag("--staleness")
    $help("how far a worker may be ahead of the slowest worker")
    $values("0, 1, 2, ... iterations, bsp (a barrier), asp (no bound), \"adaptive(1,8)\" (a bound "
        "that moves from 1 to 8), auto (such a bound, batches by speed and ordered momentum), "
        "\"backup(N)\" (a barrier that does not wait for the last N) or \"quorum(K,20ms)\" (one "
        "that waits for K workers, and then 20 ms for more)");
  delayPolicy @29 :Training.DelayPolicy $flag("--delay-policy")
    $help("how shards apply pushes that were computed on older weights")
    $values("plain (like pushes without lag), \"lag_scaled(1)\" (learning rate / lag), "
        "\"lag_scaled(1,500)\" (the power falls to 0 within 500 rounds), "
        "\"delay_adaptive(0.1)\" (learning rate times lag at most 0.1), gap_aware, "
        "\"delay_compensated(0.04)\", "
        "\"delay_compensated(2,0.95)\" (adaptive, with this decay of the mean square), "
        "ordered_momentum, \"delay_threshold(4)\" (compute again at this lag), \"fed_buff(4)\" (an "
        "update of 4 pushes), or with local steps \"fed_async(0.6,0.5)\"");
  workers @8 :UInt32 = 4 $range(Range.workers) $flag("--workers") $help("number of workers");
  shards @9 :UInt32 = 2 $range(least = 1, most = Range.maxShards) $flag("--shards")
    $help("number of shards, which hold the parameters");
  replicas @26 :UInt32 = 1 $range(least = 1, most = 2) $flag("--replicas")
    $help("actors that hold each shard; 2: a standby takes over when one is lost");
  batch @10 :UInt32 = 64 $range(least = 1, most = 16777216) $flag("--batch")
    $help("samples per iteration of a worker, or per local step");
  microBatches @11 :UInt32 = 1 $range(least = 1) $flag("--micro-batches")
    $help("micro-batches per batch, whose gradients are summed; a pipeline runs them one after "
        "the other");
  prefetch @12 :Bool $flag("--prefetch")
    $help("pull the next weights while computing; costs one iteration of staleness");
  leaseSize @13 :UInt32 $flag("--lease-size")
    $help("samples per lease under ssp and asp; 0: eight batches, or an iteration of local steps");
  splitData @31 :Data.SplitData $flag("--split-data")
    $help("how the training samples are divided among the workers")
    $values("shared (every worker trains any), iid (a random part for each worker), "
        "\"dirichlet(0.5)\" (parts with other shares of the classes) or \"by_label(2)\" (parts of "
        "about two labels)");
  participation @32 :Float64 = 1 $range(above = 0, most = 1) $flag("--participation")
    $help("share of the workers that train in each round of bsp, drawn anew; the others send "
        "empty pushes");
  aggregate @33 :Training.Aggregate $flag("--aggregate")
    $help("under bsp: workers that sum their gradients before one of them pushes")
    $values("none, host (all workers of a host) or a number of adjacent workers");
  stragglers @14 :List(Faults.Straggler) $limit("kMaxWorkers") $flag("--slow")
    $help("workers that are slowed down")
    $values("3:4x (worker 3 takes four times as long), 3:4x@20%/50 (in 20% of its iterations, in "
        "bursts of 50), all:pareto(1.5), 3:pauses(200ms/50), 3:decay(8x/1000), "
        "3:sharing(3x,100/300), 3:repeated(4,4,1), 3:delay(5ms), 3:trace(FILE), 2+3:4x@20% (with "
        "the same random draws), 3:4x@from=50% (in the second half of the run), or a list with "
        "commas; none removes the stragglers of the scenario");
  faults @15 :List(Faults.Fault) $limit("kMaxWorkers") $flag("--fault") $help("faults to inject")
    $values("2:crash@3s, 2:crash(500ms)@100 (restarted after 500 ms), 2:joins@3s, 2:leaves@3s, "
        "2:freeze(1s)@100, 2:throws@100, 2:killed@100; in a simulation also slow, break, delay, "
        "silence, partition, slow-link and stop-clock, see docs/simulator.md; none removes the "
        "faults of the scenario; can be repeated");
  stop @16 :Stop $help("when the run ends: at the first of these limits");
  evaluateEvery @17 :Float64 = 1 $range(Range.evaluateEvery) $flag("--evaluate-every")
    $help("epochs between evaluations on the test set; 0: only at the end");
  augment @18 :Data.Augment $flag("--augment")
    $help("random augmentation of the training images, redrawn in each epoch")
    $values("flip, shift=2 (by up to 2 pixels), both with a comma between, or none");
  device @19 :Text = "cpu" $flag("--device")
    $help("where to compute: cpu, cuda or cuda:1 for all, or a list such as "
        "workers=cuda,worker3=cpu,shards=cuda:0");
  precision @28 :Text = "fp32" $flag("--precision")
    $help("of the products of linear, unembedding and conv2d layers; everything else is fp32")
    $values("fp32, bf16 or fp16 (operands rounded to 16 bits, sums in fp32; fp16 is fast only on "
        "GPUs), tf32 (on GPUs), mixed (bf16, and weights and activations are sent in bf16), or one "
        "of them with other precisions of some layers, such as bf16,0=fp32,3-5=tf32");
  lossScale @34 :Float64 = 65536 $range(least = 1, most = Range.lossScale) $flag("--loss-scale")
    $help("factor of losses at the start, if products have operands in fp16: a power of two; halved "
        "after an overflow, doubled after 2000 iterations without one");
  initFrom @20 :Text $flag("--init")
    $help("safetensors file with the initial weights; empty: drawn from the seed");
  balance @21 :Training.Balance $flag("--balance") $help("samples per iteration of each worker")
    $values("equal (the batch) or speed (in proportion to the worker's speed, on average the "
        "batch)");
  pipeline @23 :StagesOfModel $help("workers that train one model together, as its stages");
  localSteps @30 :Training.LocalSteps
    $help("training of workers on their own copies of the weights");
  checkpoints @24 :Saved.Checkpoints $flag("--checkpoint-every") $help("interval of checkpoints")
    $values("30s, 10min, 2h, 2ep (epochs), 500it (iterations of all workers) or none");
  fineTuning @25 :Training.FineTuning $help("training that begins with trained weights");
  compress @27 :Compress.Compression $flag("--compress")
    $help("encodings of gradients, weights and activations in messages")
    $values("a list such as push=int8,pull=bf16; push: bf16, fp16, int8, int4, \"two_bit(0.5)\" "
        "(plus or minus 0.5, or 0), one_bit, \"top_k(0.01)\" (the largest 1%), \"top_k(0.01,2)\" (with two epochs of warm-up), "
        "\"random_k(0.01)\"; "
        "pull, activations and activation_gradients (of stages): bf16, fp16, int8; none for no "
        "encodings");
  host @22 :World.Host $name("simulated") $help("where the actors run");
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
  predictWeights @5 :Bool $flag("--predict-weights")
    $help("without a flush: pull the weights that the optimizer's momentum predicts for the "
        "gradient's update");
}

struct Stop {
  epochs @0 :Float64 = 10 $range(Range.epochs) $flag("--epochs")
    $help("passes over the training data, may be a fraction; 0: no limit");
  iterations @1 :UInt64 $range(Range.counted) $flag("--iterations")
    $help("iterations of all workers together, or of all pipelines; 0: no limit");
  seconds @2 :Float64 $range(Range.seconds) $flag("--seconds") $help("seconds; 0: no limit");
  accuracy @3 :Float64 $range(Range.share) $flag("--until-accuracy")
    $help("test accuracy, 0 to 1; 0 disables it");
}
