#pragma once
// RunReport: the result of a run: its workers, waits, version lags and evaluations.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/time.hpp"
#include "messages/monitor.hpp"

namespace leeway {

/// The counts and times of one worker so far. The samples of a pipeline are those of the stage that
/// knows the losses.
struct WorkerTotals {
  std::uint64_t iterations = 0;
  std::uint64_t samples = 0;
  std::uint64_t outdated =
      0;  // iterations computed again, because their weights had become too old
  Duration compute;
  Duration wait;                     // ready to compute, but without weights
  Duration wait_before, wait_after;  // of a stage: the share of `wait` for each neighbour
  std::uint64_t memory_bytes = 0;    // of a stage: peak memory, see StageMemory
  std::string end;                   // the reason of the last eviction; empty without one
  std::optional<WorkerId> rejoined;  // the reason is only that this worker has joined again
  bool back = false;                 // has rejoined since
};

/// Adds a report of the worker, or other totals of it.
template <class Part>
void add_work(WorkerTotals& totals, const Part& part) {
  totals.iterations += part.iterations;
  totals.samples += part.samples;
  totals.outdated += part.outdated;
  totals.compute += part.compute;
  totals.wait += part.wait;
  totals.wait_before += part.wait_before;
  totals.wait_after += part.wait_after;
  totals.memory_bytes = std::max(totals.memory_bytes, part.memory_bytes);
}

/// `worker` waited for `for_worker`, over all shards.
struct WaitTotals {
  WorkerId worker;
  WorkerId for_worker;
  Duration time;
  std::uint64_t count = 0;
};

/// The run so far, as reported to the monitor.
struct Progress {
  Instant now;
  Epoch epoch;
  std::uint64_t iterations = 0;
  std::uint64_t samples = 0;          // computed by workers
  std::uint64_t samples_trained = 0;  // confirmed, each counted once
  std::uint64_t partial_pushes = 0;
  std::uint32_t live_workers = 0;
  std::uint32_t staleness = 0;  // if the bound moves: the newest
  double train_loss = 0;        // mean over the samples since the last progress; NaN without any
  double train_accuracy = 0;
  std::int64_t clock_gap = 0;  // now, the largest over the shards
  std::int64_t max_clock_gap = 0;
  std::uint32_t parked_now = 0;
  std::uint64_t parked_pulls = 0;
  // Of gradients, of weights, and between stages in messages; and the same without a codec:
  std::uint64_t push_bytes = 0, plain_push_bytes = 0;
  std::uint64_t pull_bytes = 0, plain_pull_bytes = 0;
  std::uint64_t stage_bytes = 0, plain_stage_bytes = 0;
  std::uint64_t kept_bytes = 0;       // the most old weights that shards kept for a delay policy
  double loss_scale = 0;              // under fp16, the smallest of the shards'; 0: none
  std::uint64_t skipped_updates = 0;  // after an overflow
  std::uint64_t malformed = 0;
  std::uint64_t refused = 0;
};

struct EvaluationResult {
  Instant now;  // when the snapshot was evaluated
  std::uint64_t samples_trained = 0;
  double loss = 0;
  double accuracy = 0;
  bool final = false;
  std::string error;  // empty: evaluated
};

/// A checkpoint that was written, or could not be.
struct CheckpointResult {
  Instant now;  // when the monitor heard of it
  std::uint64_t number = 0;
  std::uint64_t samples_trained = 0;  // in it
  std::uint64_t bytes = 0;
  std::string error;  // empty: written
};

/// The run after its end.
struct RunReport {
  Progress last;
  msg::RunEnded end;
  std::vector<WorkerTotals> workers;
  std::vector<WaitTotals> waits;            // longest first
  std::vector<std::uint64_t> version_lags;  // pushes by lag; the last bin counts all larger ones
  std::vector<EvaluationResult> evaluations;
  std::vector<CheckpointResult> checkpoints;
  /// By straggler of the plan: the time that it added to computations, over all workers that it
  /// slows, and the number of iterations that it slowed.
  std::vector<double> straggler_seconds;
  std::vector<std::uint64_t> slowed_iterations;
  /// By fault of the plan: whether it has begun, at an actor that it could disturb.
  std::vector<bool> faults_fired;
  /// Stragglers and faults that had no effect, each with the reason and what to change.
  std::vector<std::string> warnings;
  Iteration last_snapshot_iteration;  // of the snapshot that was evaluated last
};

}  // namespace leeway
