#pragma once
// GradientSum: the mean gradient of a mini-batch, from those of its micro-batches.
//
// Micro-batches are added in ascending order, each with its share of the samples, by
// kernels::accumulate: so who computes a part of a model in some order of a pipeline's schedule
// gets the bits that one worker gets who computes all of it, micro-batch by micro-batch.
#include <memory>
#include <span>
#include <vector>

#include "models/layout.hpp"
#include "models/model.hpp"

namespace leeway {

/// Factor of a mean gradient over `samples` in the mean over `total`. Workers that sum
/// micro-batches and shards that sum workers use this one, with kernels::accumulate, so that both
/// give the same bits.
inline float mean_scale(std::int64_t samples, std::int64_t total) {
  return static_cast<float>(static_cast<double>(samples) / static_cast<double>(total));
}

/// to += from: two gradients of one parameter of this shape, cut by rows each in its own way. A
/// table that is used twice gets the embedding's gradient first, and to it this adds the
/// unembedding's: within one pass after each micro-batch; where the two are computed in different
/// parts of a model, once, when both have summed their micro-batches. With one micro-batch that
/// gives the same bits, with several the same but for rounding.
void add_gradient(Executor& on, GradientView to, GradientView from, const Shape& shape);

/// The blocks whose gradients a part of a model computes: those of its layers, and those of a
/// parameter that one of them borrows from another part.
std::vector<BlockId> blocks_of_chunk(const Model& model, const Layout& layout, ModelChunk part);

class GradientSum {
 public:
  /// `several`: there may be more micro-batches than one. Memory is of `on`.
  GradientSum(std::shared_ptr<const Model> model, std::shared_ptr<const Layout> layout,
              ModelChunk part, std::shared_ptr<Executor> on, bool several);
  /// Others may get this memory as soon as it is given back.
  ~GradientSum();

  /// Takes fresh memory for the gradients of a mini-batch that has `total` samples, in
  /// `micro_batches` micro-batches. Requires `several` for more than one.
  void start(std::int64_t total, std::int64_t micro_batches);
  /// Where a backward writes the gradients of a micro-batch: one view a parameter of the model,
  /// those of other parts without slices.
  std::span<const GradientView> views() const { return slices_.views(); }
  /// Adds the gradients of a layer of the part, which backward of a micro-batch of so many samples
  /// has just written; micro-batches come in ascending order. A layer that borrows a parameter from
  /// another part adds this part's share of it.
  void add(int layer, std::int64_t samples);

  /// Bytes that it holds now.
  std::int64_t bytes() const;

  /// The gradient of a block, when all micro-batches have been added. Leaves the sum without it.
  Blob take(BlockId block) { return std::move(sums_[block.value()]); }

 private:
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Layout> layout_;
  std::shared_ptr<Executor> on_;
  ModelChunk part_;
  std::vector<BlockId> blocks_;
  std::vector<Blob> sums_;    // by block
  std::vector<Blob> pieces_;  // likewise: gradients of one micro-batch, when there are several
  std::vector<std::int64_t> added_;  // likewise: micro-batches
  ParameterSlices<float> slices_;
  std::int64_t total_ = 0;
  std::int64_t micro_batches_ = 1;
};

}  // namespace leeway
