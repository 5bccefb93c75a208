#pragma once
// ComputeWork: consecutive operations of one participant. A stage's work is one operation of its
// schedule. A worker's work is a whole iteration: a forward and a backward for each micro-batch.
//
// If the last operation is the backward that completes an iteration, each part ends with a layer
// whose gradients are complete; all earlier operations belong to the first part. If the norm of a
// push is limited, or losses are scaled, there is one part.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/job.hpp"
#include "actors/outbox.hpp"
#include "actors/worker/compute_engine.hpp"
#include "actors/worker/iteration_work.hpp"
#include "policies/pipeline/table.hpp"

namespace leeway {

class ComputeWork final : public IterationWork {
 public:
  struct Operation {
    pipeline::OpKind kind{};  // not an update
    int chunk = 0;
    std::shared_ptr<MicroBatch> micro_batch;
    Blob input;  // the activation, or the gradient of the output; can be empty
  };
  struct Task {
    std::vector<Operation> operations;  // at least one
    std::int64_t samples = 0;           // of the iteration
    std::int64_t micro_batches = 1;     // of the iteration, with samples
    bool opens = false;                 // the first work of its iteration
    bool begins = false;    // its first backward is the first to add gradients of its iteration
    bool ends = false;      // its last operation is the last to do so
    bool releases = false;  // its last operation is the last to read its weights
  };
  /// `engine` is null when the job only counts costs.
  ComputeWork(std::shared_ptr<const Job> job, WorkerId worker,
              std::shared_ptr<ComputeEngine> engine, Task task);

  int parts() const override { return std::max(1, static_cast<int>(layers_.size())); }
  Cost cost(int part) const override;
  bool continues_iteration() const override { return !task_.opens; }
  void run(int part) override;
  void cancel() override { cancelled_ = true; }

  // Memory traffic that takes as long as the codecs of the plan:
  /// of the weights, before the first part,
  std::int64_t pull_decoding_bytes() const;
  /// of the gradients of a part.
  std::int64_t push_encoding_bytes(int part) const;

  const Task& task() const { return task_; }
  /// Of its backward operations.
  std::int64_t samples() const { return loss_samples_; }
  const Operation& last() const { return task_.operations.back(); }

  // After its first part:
  /// Requires a backward for inputs in the last chunk.
  const PassResult& result() const override { return result_; }
  const std::string& diverged_layer() const override { return diverged_layer_; }

  std::vector<int> layers_of(int part) const override;
  double share_done(int part) const override;
  Blob take_gradient(BlockId block) override;
  double squares() const override { return squares_; }
  const std::vector<Version>& versions() const override {
    return last().micro_batch->weights->versions();
  }
  /// After the last part: the tensor for the neighbour; empty without one.
  Blob take_output() { return std::move(output_); }

 private:
  const StageShare& share() const { return job_->stages->computed_by(worker_); }
  const ModelChunk& range_of(const Operation& op) const {
    return share().chunks[static_cast<std::size_t>(op.chunk)];
  }
  bool is_first(const Operation& op) const { return range_of(op).first == 0; }
  bool is_last(const Operation& op) const { return range_of(op).end == job_->model->layers(); }
  std::vector<int> completed_layers() const;
  std::int64_t flops_of(const Operation& op) const;
  enum class Way : std::uint8_t { decode, encode };
  /// The same of a tensor that an operation gets from another stage, or gives it.
  std::int64_t stage_codec_bytes(const Operation& op, Way way) const;
  /// Whether a chunk before or after that of the operation is on another stage.
  bool is_beside_stage(const Operation& op, int offset) const;
  /// A part of a cancelled work: the last one releases the activations.
  void abandon(int part);
  void pretend(int part);
  void compute(int part);
  void forward(Operation& op);
  /// The layers of one backward that `part` of `parts` covers.
  void backward(Operation& op, int part, int parts);
  void read_loss(const Operation& op);
  void hand_over_gradients(int layer);
  void release_weights(int layer);
  /// Divides the gradients by the factor of the loss, and sums their squares.
  void finish_gradients();
  /// Its memory traffic.
  std::int64_t finishing_bytes() const;
  /// Records the number of bytes held now, minus `excluded`.
  void note_held(MicroBatch& micro_batch, std::size_t excluded = 0);

  std::shared_ptr<const Job> job_;
  WorkerId worker_;
  std::shared_ptr<ComputeEngine> engine_;
  Task task_;
  std::vector<int> layers_;  // per part: the layer that it completes, if backward is divided
  std::int64_t loss_samples_ = 0;
  std::atomic<bool> cancelled_{false};  // set by the role, read while a part runs
  bool summing_ = false;                // gradients of the iteration have been added
  Blob output_;
  PassResult result_;
  std::string diverged_layer_;
  std::vector<Blob> gradients_;  // by block: complete ones
  double squares_ = 0;
};

/// The forward and backward of each micro-batch of these samples, for the whole model. `pulled`:
/// see MicroBatch. `loss_scale`: factor of the loss; 0: none.
ComputeWork::Task task_of(const Job& job, const LeasedIteration& leased,
                          std::shared_ptr<DeviceWeights> weights, Iteration pulled,
                          float loss_scale = 0);

}  // namespace leeway
