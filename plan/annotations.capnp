@0xb94e6f02d8a17c35;
# Annotations of the plan's schemas: the help, flag and accepted values of each setting.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("leeway::plan_schema");
using Cpp = import "/messages/generator/annotations.capnp";
$Cpp.namespace("leeway::plan");

annotation help @0xc3f1a7d2905be681 (field, group, union, enumerant) :Text; # its explanation
annotation flag @0xdb20e4f7c61a9835 (field) :Text;   # flag of scenario programs
annotation values @0x96d8b35f0ce7142a (field) :Text; # values of the flag, unless plain
annotation notEmpty @0xe2a4c9170b53d86f (field) :Text; # remedy for an empty text
annotation range @0xa8d07f3b56c2e491 (field) :Range; # the values that validate() accepts
struct Range $Cpp.schemaOnly {
  least @0 :Float64 = -inf;
  above @1 :Float64 = -inf;
  most @2 :Float64 = inf;
  below @3 :Float64 = inf;
  orZero @4 :Bool; # also accept 0
  float @5 :Bool;  # round the value to float first, as kernels do
  give @6 :Text;   # remedy in errors; empty: the bounds above
}

# Equal to the constants of core/limits.hpp.
const maxWorkers :Float64 = 65536;
const maxShards :Float64 = 4096;
const maxStages :Float64 = 1024;
const maxChunks :Float64 = 26;
# Also plan::kMaxSlowdown.
const maxSlowdown :Float64 = 1e6;

const lossScale :Float64 = 16777216;
const workers :Range = (least = 1, most = .maxWorkers);
const maxPixels :Float64 = 1024; # bound of kernels and strides
const mostNumber :Float64 = 1e9;     # of samples: far below what a counter or a float holds
const aboveZero :Range = (above = 0, most = .mostNumber);
const aboveZeroFloat :Range = (above = 0, most = .mostNumber, float = true); # above 0 as a float
const number :Range = (least = -1e9, most = 1e9);
const atLeastOne :Range = (least = 1);
const notNegative :Range = (least = 0, most = .mostNumber);
const share :Range = (least = 0, most = 1);
const belowOne :Range = (least = 0, below = 1);
const clip :Range = (least = 1e-30, most = 1e9, orZero = true, float = true,
    give = "1e-30 to 1e9, or 0 for no limit");
const factor :Range = (least = 0, most = 1e6);
const growth :Range = (least = 1, most = 1000);
const divisor :Range = (least = 1, most = 1e9);
const testShare :Range = (above = 0, below = 1, give = "more than 0 and less than 1");
const pixels :Range = (least = 1, most = .maxPixels);
const slowdown :Range = (least = 1, most = .maxSlowdown,
    give = "a factor from 1 to 1000000, as in --slow 3:4x");
const iterations :Range = (least = 1, give = "1 or more iterations");
const checkpointSeconds :Range = (least = 0.1, most = 31536000, give = "0.1 seconds to a year");
const lasting :Range = (above = 0, most = 86400, give = "seconds above 0, up to a day");
const delay :Range = (above = 0, most = 3.6e6, give = "more than 0, up to an hour");
const microseconds :Range = (least = 0, most = 1e8, give = "0 to 1e8 microseconds");
const tail :Range = (least = 0.1, most = 100,
    give = "0.1 (very heavy) to 100 (hardly any tail), as in --slow 3:pareto(1.5)");
const pause :Range = (above = 0, most = 3.6e6,
    give = "more than 0, up to an hour, as in --slow 3:pauses(200ms/50)");
const pauseEvery :Range = (above = 0, most = 86400,
    give = "more than 0, up to a day, as in --slow 3:pauses(200ms/2s)");
const jitter :Range = (least = 0, most = 100, give = "a share of the latency, such as 0.2");
const link :Range = (least = 1e-6, most = 1e9, orZero = true, give = "Gbit/s, or 0 for no limit");
const shareOfIterations :Range = (least = 0, most = 1,
    give = "0 to 1, or 0% to 100% as in --slow 3:4x@20%");
const startShare :Range = (least = 0, below = 1,
    give = "0 to below 1, or 0% to below 100% as in --slow 3:4x@from=50%");
const phase :Range = (least = -1, below = 8589934592,
    give = "a number of iterations below on + off, or -1 for a random phase");
const evaluateEvery :Range = (least = 1e-6, most = .mostNumber, orZero = true,
    give = "1e-6 to 1e9 epochs, or 0 to evaluate only at the end");
const gigaflops :Range = (least = 1e-9, most = 1e9, give = "1e-9 to 1e9 GFLOP/s of a core");
const gigabytes :Range = (least = 1e-9, most = 1e9, give = "1e-9 to 1e9 GB/s of a core");
const noise :Range = (least = 0, below = 1, give = "a share below 1, such as 0.05");
const detection :Range = (least = 0, most = 1e5, give = "0 to 100000 milliseconds");
const contention :Range = (least = 0, most = 100, give = "a share of the time, such as 0.1");
const cold :Range = (least = 0, most = 100, give = "a share of the time, such as 0.3");
const learningRate :Range = (least = 1e-30, most = 1e18, float = true,
    give = "--lr 1e-30 to 1e18, such as 0.1");
const weightDecay :Range = (least = 0, most = 1e6, give = "0 to 1e6, such as 0.0001");
const iteration :Range = (least = 0, below = 1099511627776, give = "0 to 1099511627775"); # 2^40
const restart :Range = (least = 0, most = 86400, give = "seconds up to a day, or 0 for never");
const epochs :Range = (least = 1e-9, most = .mostNumber, orZero = true,
    give = "--epochs 1e-9 to 1e9, or 0 for no limit");
const seconds :Range = (least = 1e-6, most = 3.15576e9, orZero = true,
    give = "--seconds 1e-6 to 3.15576e9 (a century), or 0 for no limit");
const counted :Range = (least = 0, most = 1152921504606846976); # 2^60
const checkpointEpochs :Range = (least = 1e-6, most = .mostNumber, give = "1e-6 to 1e9 epochs");
const checkpointIterations :Range = (least = 1, most = 1152921504606846976,
    give = "1 iteration or more");
