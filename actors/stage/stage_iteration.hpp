#pragma once
// StageIteration: an iteration whose samples a stage knows, until the stage has pushed it.
#include <cstdint>
#include <map>
#include <vector>

#include "actors/worker/lease_queue.hpp"
#include "actors/worker/parameter_client.hpp"
#include "core/ids.hpp"
#include "models/chunk_pass.hpp"
#include "policies/balance/micro_batches.hpp"

namespace leeway {

class StageIteration {
 public:
  /// `count`: micro-batches that have samples. `chunks`: of the stage.
  StageIteration(LeasedIteration of, std::int64_t count, std::size_t chunks)
      : leased(std::move(of)), micro_batches(count), backward_(chunks), summed_(chunks) {}

  /// Samples of a micro-batch; 0 if the schedule has it and this iteration does not.
  std::int64_t size_of(std::int64_t micro_batch) const {
    if (micro_batch >= micro_batches) return 0;
    return first_sample(leased.samples(), micro_batch + 1, micro_batches) -
           first_sample(leased.samples(), micro_batch, micro_batches);
  }
  /// Counts a backward for inputs of a chunk; true for the first one.
  bool count_backward(int chunk) { return backward_[static_cast<std::size_t>(chunk)]++ == 0; }
  /// Counts a backward for weights of a chunk; true for the last one.
  bool count_summed(int chunk) {
    return ++summed_[static_cast<std::size_t>(chunk)] == micro_batches;
  }
  PushedIteration pushed(Iteration iteration, float scale = 1) const {
    return {.iteration = iteration,
            .weight = leased.weight(),
            .samples = static_cast<std::uint32_t>(leased.samples()),
            .applied = leased.applied,
            .scale = scale,
            .flushes = leased.flushes};
  }
  /// Adds the result of a micro-batch in the model's last chunk.
  void add(const PassResult& result, std::int64_t samples) {
    loss_sum += result.loss * static_cast<double>(samples);
    correct += result.correct;
  }

  const LeasedIteration leased;
  const std::int64_t micro_batches;
  bool begun = false;
  std::vector<Version> versions;  // of the weights that its first forward read
  double loss_sum = 0;            // over samples
  std::int64_t correct = 0;
  // Complete gradients that wait for the norm of the pipeline:
  std::vector<int> held_layers;  // in the order of completion
  std::map<BlockId, Blob> held;

 private:
  std::vector<std::int64_t> backward_, summed_;  // per chunk: micro-batches so far
};

}  // namespace leeway
