#pragma once
// StagePass: what a stage of a pipeline computes with, and the work of one operation.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/micro_batch.hpp"
#include "actors/outbox.hpp"
#include "actors/worker/parameter_client.hpp"
#include "models/gradient_sum.hpp"
#include "models/part_pass.hpp"
#include "policies/pipeline/table.hpp"

namespace leeway {

/// One version of a stage's weights, where its device reads them.
class BoundWeights {
 public:
  BoundWeights(std::shared_ptr<const Job> job, PulledWeights pulled);
  /// What was asked for may still read them. While no work runs.
  ~BoundWeights();
  BoundWeights(const BoundWeights&) = delete;
  BoundWeights& operator=(const BoundWeights&) = delete;

  /// Fetches them, the first time. By whoever computes.
  void bind(const std::shared_ptr<Executor>& on);
  std::span<const ParameterView> views() const { return slices_.views(); }
  /// Per parameter, what tells these values from others.
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  /// Per block.
  const std::vector<Version>& versions() const { return versions_; }
  /// Nobody reads the block again: without this reference its next update can run in place.
  void release(BlockId block);
  /// Bytes that it holds now.
  std::int64_t bytes() const;

 private:
  std::shared_ptr<const Job> job_;
  std::vector<Blob> blobs_;
  std::vector<Version> versions_;
  std::vector<std::uint64_t> keys_;
  ParameterSlices<const float> slices_;
  std::shared_ptr<Executor> on_;  // null: not fetched yet
};

/// Computes the parts of the model that one stage has. Its works run one at a time; they keep it.
class StagePass {
 public:
  StagePass(std::shared_ptr<const Job> job, WorkerId worker);
  ~StagePass();

  /// Keeps these until no work runs any more: weights that a stage lets go of at once.
  void keep(std::shared_ptr<BoundWeights> weights) { kept_.push_back(std::move(weights)); }

 private:
  friend class StageWork;
  struct Chunk {
    Chunk(const Job& job, const ModelChunk& part, std::int64_t most, const PartOptions& options);
    PartPass pass;
    GradientSum sum;
  };
  /// Of an iteration that is summed, and of a micro-batch.
  std::int64_t gradient_bytes() const;

  std::shared_ptr<const Job> job_;
  std::int64_t most_;
  std::shared_ptr<Executor> on_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::shared_ptr<BoundWeights>> kept_;
};

/// A micro-batch on one part, from its forward until its backward is done.
struct StageMicroBatch {
  Epoch epoch;
  std::vector<std::int64_t> samples;
  std::shared_ptr<BoundWeights> weights;  // backward takes those of forward
  Iteration pulled;                       // of the pull that brought them
  Stash* stash = nullptr;
  std::unique_ptr<GatheredBatch> gathered;
  /// Bytes at the worst moment of its latest operation: its own, those of its weights, and the
  /// gradients of the stage. What the operation alone needs is not among them.
  std::int64_t held = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(samples.size()); }
  /// Bytes that it holds now, without its weights. While no work runs.
  std::int64_t bytes() const;
};

/// One operation of a schedule, but an update.
class StageWork final : public Work {
 public:
  struct Task {
    pipeline::OpKind kind{};
    int chunk = 0;
    std::shared_ptr<StageMicroBatch> micro_batch;
    Blob input;                      // the activation, or the gradient of the output; may be empty
    std::int64_t samples = 0;        // of the iteration
    std::int64_t micro_batches = 1;  // of the iteration, those without samples not counted
    bool opens = false;              // the first of its iteration
    bool begins = false;    // the first of its iteration that adds to the gradients of the weights
    bool ends = false;      // the last
    bool releases = false;  // the last that reads these weights
  };
  /// `pass` is null when the job only counts costs.
  StageWork(std::shared_ptr<const Job> job, WorkerId worker, std::shared_ptr<StagePass> pass,
            Task task);

  int parts() const override { return std::max(1, static_cast<int>(layers_.size())); }
  Cost cost(int part) const override;
  bool continues_iteration() const override { return !task_.opens; }
  void run(int part) override;

  const Task& task() const { return task_; }

  // After its last part:
  /// What goes to the neighbour; nothing where nobody wants it.
  Blob take_output() { return std::move(output_); }
  /// Of the last part of the model, after a backward for the inputs.
  const PassResult& result() const { return result_; }
  /// Where a loss that is not finite came from; empty while all is well.
  const std::string& diverged_layer() const { return diverged_layer_; }

  /// Layers whose gradients of the iteration are done with part `part`.
  std::vector<int> layers_of(int part) const;
  /// The gradient of a block, then. Leaves the work without it.
  Blob take_gradient(BlockId block);

 private:
  const ModelChunk& range() const { return share().chunks[static_cast<std::size_t>(task_.chunk)]; }
  const StageShare& share() const { return job_->stages->share_of(worker_); }
  bool is_first() const { return range().first == 0; }
  bool is_last() const { return range().end == job_->model->layers(); }
  void compute(int part);
  void pretend();
  void forward();
  void backward(int part);
  /// Keeps the gradients of a layer that are whole now, and lets go of its weights.
  void hand_over(int layer);
  void look_at_loss();
  /// Takes note of what is held now, but for so many bytes that nobody wants after the operation.
  void note_held(std::size_t besides = 0);

  std::shared_ptr<const Job> job_;
  WorkerId worker_;
  std::shared_ptr<StagePass> pass_;
  Task task_;
  std::vector<int> layers_;  // of a last backward in one: those whose gradients each part finishes
  Blob output_;
  PassResult result_;
  std::string diverged_layer_;
  std::vector<Blob> gradients_;  // by block
};

}  // namespace leeway
