#pragma once
// run(), simulate(): run the training loop of each worker on a separate thread of this process.
//
// In a simulation exactly one loop runs at a time, and time passes only in calls of the store: a
// loop is tested against stragglers, crashes and slow networks, and each run with the same seed is
// the same.
#include <cstdint>
#include <functional>
#include <vector>

#include "kv/store.hpp"
#include "runtime/scenario.hpp"

namespace leeway::kv {

struct Options {
  std::uint32_t workers = 4;
  std::uint32_t shards = 2;
  std::uint32_t replicas = 1;
  plan::Consistency consistency = plan::Ssp{3};
  /// How shards apply pushes that were computed on older weights. A run refuses it with rounds, and
  /// those that make a worker compute its iteration again.
  plan::DelayPolicy delay_policy;
  /// Encodings of pushes and pulls in messages: {.push = int8(), .pull = bf16()}. A run refuses
  /// those of pushes with sum, assign and updaters, with backup and quorum, and with clip_value.
  plan::Compression compress;
  /// Samples per epoch and of an iteration, for next_range(). 0: the loops decide when they end.
  std::int64_t samples = 0;
  std::uint32_t batch = 64;
  double epochs = 1;
  std::uint64_t seed = 1;
  std::vector<plan::Straggler> stragglers;
  std::vector<plan::Fault> faults;
  /// Without a setting: every minute into run.folder, if there is one; a simulation writes none.
  plan::Checkpoints checkpoints;
  plan::World world;  // of a simulation
  /// In a simulation: the time that an iteration of a whole batch computes, besides
  /// Store::compute(). A shorter range takes its share. The time passes before the first push, or
  /// at the end of an iteration without pushes. computing_time() measures it.
  Duration iteration_time;
  RunOptions run = {.quiet = true};
};

/// A worker's loop. Called once for each worker, and again when a crashed worker starts again.
using Loop = std::function<void(Store&)>;

/// Returns when all loops have ended, or the run has failed. An exception of a loop ends its
/// worker, like a crash; the first one is thrown again at the end. Result::weight("key") is the
/// last value of a key. Throws StoreError for declarations and options that do not fit.
Result run(const Loop& loop, const Options& options = {});
/// The same in virtual time.
Result simulate(const Loop& loop, const Options& options = {});

/// The mean time that the loops of a run computed for a whole batch, or without samples for an
/// iteration: Options::iteration_time of a simulation. The run has no stragglers, and a policy that
/// drops no pushes. 0 for a run without iterations.
Duration computing_time(const Result& result);

}  // namespace leeway::kv
