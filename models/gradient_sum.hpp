#pragma once
// GradientSum: the mean gradient of a mini-batch, from those of its micro-batches.
//
// kernels::accumulate adds the micro-batches in ascending order, each weighted by its share of the
// samples. So a stage of a pipeline gets the same bits as one worker that computes the whole model
// micro-batch by micro-batch, whatever the order of the schedule.
#include <memory>
#include <span>
#include <vector>

#include "kernels/executor.hpp"
#include "models/layout.hpp"
#include "models/model.hpp"

namespace leeway {

/// Weight of a mean gradient over `samples` in the mean over `total`. Workers sum micro-batches and
/// shards sum workers with this factor and kernels::accumulate, so both give the same bits.
inline float mean_scale(std::int64_t samples, std::int64_t total) {
  return static_cast<float>(static_cast<double>(samples) / static_cast<double>(total));
}

/// to += from: two gradients of one parameter of this shape, whose slices can differ. For tied
/// weights, `to` is the embedding's gradient and `from` the unembedding's. One pass adds them after
/// each micro-batch. If two chunks have summed them, they are added once, by their stage or by the
/// shard. With one micro-batch the bits are the same, with several they differ by rounding.
void add_gradient(Executor& on, GradientView to, GradientView from, const Shape& shape);

/// The blocks whose gradients a chunk computes: those of its layers, and those of a parameter that
/// one of its layers borrows from another chunk.
std::vector<BlockId> blocks_of_chunk(const Model& model, const Layout& layout, ModelChunk chunk);

class GradientSum {
 public:
  /// `several`: a mini-batch can have several micro-batches. `on` allocates the memory.
  GradientSum(std::shared_ptr<const Model> model, std::shared_ptr<const Layout> layout,
              ModelChunk chunk, std::shared_ptr<Executor> on, bool several);
  /// Waits until `on` no longer uses the memory.
  ~GradientSum();

  /// Allocates the gradients of a mini-batch that has `total` samples, in `micro_batches`
  /// micro-batches. Requires `several` for more than one.
  void start(std::int64_t total, std::int64_t micro_batches);
  /// Memory for the gradients of one micro-batch: one view per parameter of the model; those of
  /// other chunks have no slices.
  std::span<const GradientView> views() const { return slices_.views(); }
  /// Adds the gradients of a layer of the chunk, which a backward of `samples` samples has just
  /// written. Requires micro-batches in ascending order. A layer that borrows a parameter from
  /// another chunk adds this chunk's contribution.
  void add(int layer, std::int64_t samples);

  /// Bytes that it holds now.
  std::int64_t bytes() const;

  /// Moves out the gradient of a block, if the chunk has one. Requires that all micro-batches were
  /// added.
  Blob take(BlockId block) { return std::move(sums_[block.value()]); }

 private:
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Layout> layout_;
  std::shared_ptr<Executor> on_;
  ModelChunk chunk_;
  std::vector<BlockId> blocks_;
  std::vector<Blob> sums_;           // by block
  std::vector<Blob> latest_;         // by block: of one micro-batch, if there are several
  std::vector<std::int64_t> added_;  // by block: number of micro-batches
  ParameterSlices<float> slices_;
  std::int64_t total_ = 0;
  std::int64_t micro_batches_ = 1;
};

}  // namespace leeway
