#pragma once
// Step: the computation of one iteration - gather the samples, forward, loss, backward - in parts
// that end where gradients are ready to push.
#include <memory>
#include <vector>

#include "actors/job.hpp"
#include "actors/micro_batch.hpp"
#include "actors/outbox.hpp"
#include "messages/worker_scheduler.hpp"
#include "messages/worker_shard.hpp"
#include "models/gradient_sum.hpp"
#include "models/pass.hpp"

namespace leeway {

/// Buffers of one worker that live from step to step.
class StepBuffers {
 public:
  /// On the device that the job gives to `worker`.
  StepBuffers(std::shared_ptr<const Job> job, WorkerId worker);
  ~StepBuffers();

 private:
  friend class Step;

  std::shared_ptr<const Job> job_;
  std::int64_t micro_batch_;  // samples, at most
  std::shared_ptr<Executor> on_;
  Pass pass_;
  GatheredBatch batch_;
  std::vector<std::uint64_t> versions_;  // per parameter
  ParameterSlices<const float> weight_slices_;
  GradientSum gradients_;
};

/// Samples of one iteration: `positions` of the epoch's permutation, already mapped to samples.
struct StepSamples {
  Epoch epoch;
  std::vector<std::int64_t> samples;
};

class Step final : public Work {
 public:
  /// weights, versions: one a block; a blob is held until backward has passed the block's layer.
  /// `buffers` must not serve two steps at once; null when the job only counts costs.
  Step(std::shared_ptr<const Job> job, std::shared_ptr<StepBuffers> buffers, Iteration iteration,
       StepSamples samples, std::vector<Blob> weights, std::span<const Version> versions);

  int parts() const override { return static_cast<int>(layers_.size()); }
  Cost cost(int part) const override;
  void run(int part) override;

  Iteration iteration() const { return iteration_; }
  const StepSamples& samples() const { return samples_; }

  // Valid after part 0:
  double loss() const { return loss_; }
  std::int64_t correct() const { return correct_; }
  /// Where a loss that is not finite came from; empty while all is well. No gradient is to be taken
  /// then.
  const std::string& diverged_layer() const { return diverged_layer_; }

  /// Layer whose gradients part `part` finishes.
  int layer_of(int part) const { return layers_[static_cast<std::size_t>(part)]; }
  /// The gradient of a block, after its layer's part. Leaves the step without it.
  Blob take_gradient(BlockId block) { return std::move(gradients_[block.value()]); }

 private:
  std::int64_t total() const { return static_cast<std::int64_t>(samples_.samples.size()); }
  /// Where a micro-batch begins: all have nearly the same size.
  std::int64_t first_of(std::int64_t piece) const { return total() * piece / pieces_; }
  void compute(int part);
  /// What compute leaves behind, without computing.
  void pretend(int part);
  void bind_memory();
  /// Gathers a micro-batch and starts its forward.
  void start_forward(std::int64_t piece);
  /// Takes in the outcome of that forward; false when the loss is not finite.
  bool finish_forward(std::int64_t piece);
  /// Backward down to and through the layer of `part`.
  void backward(int part);
  /// The gradients of a part's layer are done, and its weights are no longer wanted.
  void hand_over(int part);
  /// Adds the micro-batch's gradients of one layer to the step's.
  void add_piece(int layer, std::int64_t piece) {
    buffers_->gradients_.add(layer, first_of(piece + 1) - first_of(piece));
  }

  std::shared_ptr<const Job> job_;
  std::shared_ptr<StepBuffers> buffers_;
  Iteration iteration_;
  StepSamples samples_;
  std::vector<Blob> weights_;
  std::vector<Version> versions_;
  std::vector<Blob> gradients_;  // those that are done
  std::vector<int> layers_;      // with parameters, last first
  std::int64_t pieces_ = 1;  // micro-batches; backward of a single one writes the step's gradients
  double loss_ = 0;          // mean over the samples so far
  std::int64_t correct_ = 0;
  std::string diverged_layer_;
};

}  // namespace leeway
