#pragma once
// Layout: how a model's parameters are split into blocks, and which shard holds which block.
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "models/model.hpp"
#include "tensor/tensor.hpp"

namespace leeway {

/// Rows of one parameter inside a block.
struct BlockSlice {
  int parameter = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t offset = 0;  // in floats, from the block's start; a multiple of 16
  std::int64_t first = 0;   // in floats, from the parameter's start
  std::int64_t floats = 0;
};

/// The unit of placement: a tensor, several small tensors of a layer, or rows of a large tensor.
/// The padding between slices is zero in weights, gradients and optimizer state (see zero_padding).
struct Block {
  BlockId id;
  int layer = 0;
  ShardId shard;
  std::vector<BlockSlice> slices;
  std::int64_t floats = 0;  // with padding between slices
  // The same for all its parameters:
  double average = 0;   // ParameterSpec::average
  bool frozen = false;  // Parameter::frozen
};

/// Zeroes the padding of a block's new memory, so that whole blocks can be updated, summed and
/// checked for NaN.
void zero_padding(Executor& on, const Block& block, float* data);
/// The same in memory of the host.
void zero_padding(const Block& block, float* data);

/// The unit of pushing: the blocks of one layer on one shard. `index` numbers the shard's buckets
/// in the order in which backward finishes them.
struct Bucket {
  std::uint32_t index = 0;
  int layer = 0;
  std::vector<BlockId> blocks;
};

class Layout {
 public:
  /// Splits the parameters and places the blocks. Depends only on its arguments, so every node
  /// computes the same layout. Requires shards > 0.
  ///
  /// Splitting: a tensor above `max_block_bytes` is split by rows into blocks of nearly equal size;
  /// a row or a vector is never split. A tensor of at least limits::kSmallTensorBytes is a separate
  /// block. A smaller tensor joins the latest block of its layer while the block stays within
  /// `max_block_bytes`; statistics join only statistics. The weight and the bias of a linear layer
  /// are usually one block. Placing: the largest block first, on the shard with the fewest floats;
  /// the lower block and the lower shard win ties.
  Layout(const Model& model, std::uint32_t shards, std::size_t max_block_bytes);

  const std::vector<Block>& blocks() const { return blocks_; }
  const Block& block(BlockId id) const { return blocks_[id.value()]; }
  std::uint32_t shards() const { return static_cast<std::uint32_t>(buckets_.size()); }
  const std::vector<Bucket>& buckets(ShardId shard) const { return buckets_[shard.value()]; }
  /// Blocks of a shard in id order.
  const std::vector<BlockId>& blocks_of(ShardId shard) const { return by_shard_[shard.value()]; }

 private:
  std::vector<Block> blocks_;
  std::vector<std::vector<Bucket>> buckets_;
  std::vector<std::vector<BlockId>> by_shard_;
};

/// The layout of a job: blocks of a shard's share of the model, and at most limits::kMaxBlockBytes,
/// so that the shards are balanced.
Layout balanced_layout(const Model& model, std::uint32_t shards);

/// Slices of every parameter over block memory: at(p) is the view of parameter p. `blocks[i]` is
/// the start of block i's floats.
template <class T>
class ParameterSlices {
 public:
  ParameterSlices(const Model& model, const Layout& layout, const std::vector<T*>& blocks);
  ParameterSlices(ParameterSlices&&) = default;  // no copy: the views point into the slices
  ParameterSlices& operator=(ParameterSlices&&) = default;
  /// Points the slices of one block at new memory.
  void set_block(const Layout& layout, BlockId id, T* data);
  std::span<const std::span<const RowSlice<T>>> views() const { return views_; }

 private:
  std::vector<RowSlice<T>> slices_;  // by parameter, and by row within one
  std::vector<std::span<const RowSlice<T>>> views_;
  std::vector<std::vector<std::size_t>>
      slice_of_block_;  // per block, per slice: index into slices_
};

extern template class ParameterSlices<float>;
extern template class ParameterSlices<const float>;

}  // namespace leeway
