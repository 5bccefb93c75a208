#pragma once
// StagePosition: the position of a stage in its pipeline. It knows the stage's chunks of the model,
// the stages that it exchanges messages with, and the shapes of the tensors between them.
//
// A chunk has two numbers: its index among the stage's own chunks (`chunk`), and its index in the
// whole model (`model_chunk`), which messages and events use (see pipeline::Table).
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "actors/job.hpp"
#include "core/address.hpp"

namespace leeway {

/// A micro-batch in a chunk: iteration, micro-batch of the iteration, model chunk.
using MicroBatchKey = std::tuple<Iteration, std::uint32_t, std::uint32_t>;

class StagePosition {
 public:
  StagePosition(std::shared_ptr<const Job> job, WorkerId id);

  int stage() const { return static_cast<int>(stage_); }
  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ + 1 == job_->stages->count(); }
  /// Whether the model's last chunk is here, which gives the losses.
  bool has_loss() const { return stage_ == job_->stages->loss_stage(); }

  // Chunks.
  std::uint32_t model_chunks() const {
    return static_cast<std::uint32_t>(job_->stages->chunks().size());
  }
  std::uint32_t model_chunk(int chunk) const {
    return static_cast<std::uint32_t>(placement().model_chunk(stage(), chunk));
  }
  bool owns(std::uint32_t model_chunk) const {
    return model_chunk < model_chunks() && owner(model_chunk) == stage_;
  }
  /// Whether this chunk reads activations of the next stage, and gradients of the previous one.
  bool runs_back(int chunk) const { return placement().runs_back(chunk); }
  const ModelChunk& layers_of(std::uint32_t model_chunk) const {
    return job_->stages->chunks()[model_chunk];
  }

  // Other stages.
  Address previous() const { return address_of_stage(stage_ - 1); }
  Address next() const { return address_of_stage(stage_ + 1); }
  Address owner_of(std::uint32_t model_chunk) const { return address_of_stage(owner(model_chunk)); }
  /// Whether `peer` is a stage of this pipeline that sends to this one.
  bool is_neighbour(Address peer) const;

  // Tensors.
  /// The shape of the activation that a model chunk reads.
  Shape input_shape(std::uint32_t model_chunk, std::int64_t samples) const;
  Shape output_shape(std::uint32_t model_chunk, std::int64_t samples) const;
  /// Whether a chunk needs the gradient of its output: it or an earlier chunk has parameters.
  bool needs_output_gradient(std::uint32_t model_chunk) const {
    return needs_output_gradient_[model_chunk];
  }

 private:
  const pipeline::Placement& placement() const { return job_->stages->placement(); }
  std::uint32_t owner(std::uint32_t model_chunk) const {
    return static_cast<std::uint32_t>(placement().stage_of(static_cast<int>(model_chunk)));
  }
  Address address_of_stage(std::uint32_t stage) const {
    return address_of(job_->stages->worker(job_->stages->lead_of(id_), stage));
  }

  std::shared_ptr<const Job> job_;
  WorkerId id_;
  std::uint32_t stage_;
  std::vector<WorkerId> neighbours_;
  std::vector<bool> needs_output_gradient_;  // by model chunk
};

}  // namespace leeway
