#pragma once
// Layout: how a model's parameters are cut into blocks, and which shard holds which block.
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "models/model.hpp"
#include "tensor/tensor.hpp"

namespace leeway {

/// Rows of one parameter inside a block. `offset` counts floats from the block's start and is a multiple of 16.
struct BlockSlice {
  int parameter = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t offset = 0;
};

/// The unit of placement: a whole tensor, the small ones of a layer together, or some rows of a very large one.
struct Block {
  BlockId id;
  int layer = 0;
  ShardId shard;
  std::vector<BlockSlice> slices;
  std::int64_t floats = 0;  // with padding between slices
};

/// The blocks of one layer on one shard: they are pushed together. `index` counts the shard's parts in the order in
/// which backward finishes them.
struct Part {
  std::uint32_t index = 0;
  int layer = 0;
  std::vector<BlockId> blocks;
};

class Layout {
 public:
  /// Cuts and places. Deterministic in its arguments, so every node computes the same. Blocks are placed largest first on the shard with
  /// the fewest bytes.
  Layout(const Model& model, std::uint32_t shards, std::size_t max_block_bytes);

  const std::vector<Block>& blocks() const { return blocks_; }
  const Block& block(BlockId id) const { return blocks_[id.value()]; }
  std::uint32_t shards() const { return static_cast<std::uint32_t>(parts_.size()); }
  const std::vector<Part>& parts(ShardId shard) const { return parts_[shard.value()]; }
  /// Blocks of a shard in id order.
  const std::vector<BlockId>& blocks_of(ShardId shard) const { return by_shard_[shard.value()]; }

 private:
  std::vector<Block> blocks_;
  std::vector<std::vector<Part>> parts_;
  std::vector<std::vector<BlockId>> by_shard_;
};

/// Slices of every parameter over block memory: at(p) is the view of parameter p. `blocks[i]` is the start of block i's floats.
template <class T>
class ParameterSlices {
 public:
  ParameterSlices(const Model& model, const Layout& layout, const std::vector<T*>& blocks);
  /// Points the slices of one block at new memory.
  void set_block(const Layout& layout, BlockId id, T* data);
  std::span<const std::span<const RowSlice<T>>> views() const { return views_; }

 private:
  const Model* model_;
  std::vector<RowSlice<T>> slices_;
  std::vector<std::span<const RowSlice<T>>> views_;
  std::vector<std::vector<std::size_t>> slice_of_block_;  // per block, per slice: index into slices_
};

extern template class ParameterSlices<float>;
extern template class ParameterSlices<const float>;

}  // namespace leeway
