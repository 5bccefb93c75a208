#include "models/layout.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/limits.hpp"
#include "kernels/executor.hpp"

namespace leeway {

namespace {

/// Slices begin on cache lines.
constexpr std::int64_t kAlignFloats = 16;

constexpr std::int64_t aligned(std::int64_t floats) {
  return (floats + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
}

/// Splits a model's parameters into blocks, layer by layer.
class BlockSplitter {
 public:
  BlockSplitter(const Model& model, std::size_t max_block_bytes)
      : model_(model),
        max_floats_(
            std::max(kAlignFloats, static_cast<std::int64_t>(max_block_bytes / sizeof(float)) /
                                       kAlignFloats * kAlignFloats)) {}

  std::vector<Block> split() {
    for (int layer = 0; layer < model_.layers(); ++layer) split_layer(layer);
    LW_CHECK(blocks_.size() <= limits::kMaxBlocks, blocks_.size());
    return std::move(blocks_);
  }

 private:
  void split_layer(int layer) {
    const int begin = model_.first_parameter(layer);
    const int end = model_.first_parameter(layer + 1);
    const auto first_block = blocks_.size();
    for (int p = begin; p < end; ++p)
      if (!is_small(p)) split_rows(layer, p);
    for (int p = begin; p < end; ++p) {
      if (!is_small(p)) continue;
      const std::int64_t floats = shape(p).count();
      const bool joins = blocks_.size() > first_block &&
                         blocks_.back().average == spec(p).average &&
                         aligned(blocks_.back().floats) + floats <= max_floats_;
      if (!joins) add_block(layer, spec(p).average);
      add_slice(p, 0, shape(p).rows());
    }
  }

  void split_rows(int layer, int parameter) {
    const std::int64_t rows = shape(parameter).rows();
    const bool vector = shape(parameter).rank() == 1;
    const std::int64_t rows_max =
        vector ? rows : std::max<std::int64_t>(1, max_floats_ / shape(parameter).row_count());
    const std::int64_t pieces = (rows + rows_max - 1) / rows_max;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t from = rows * piece / pieces;
      add_block(layer, spec(parameter).average);
      add_slice(parameter, from, rows * (piece + 1) / pieces - from);
    }
  }

  void add_block(int layer, double average) {
    Block block;
    block.average = average;
    block.id = BlockId(static_cast<std::uint32_t>(blocks_.size()));
    block.layer = layer;
    blocks_.push_back(std::move(block));
  }

  void add_slice(int parameter, std::int64_t first_row, std::int64_t rows) {
    Block& block = blocks_.back();
    block.frozen = model_.parameters()[static_cast<std::size_t>(parameter)].frozen;
    const std::int64_t offset = aligned(block.floats);
    const std::int64_t row = shape(parameter).row_count();
    block.slices.push_back({parameter, first_row, rows, offset, first_row * row, rows * row});
    block.floats = offset + rows * row;
  }

  const ParameterSpec& spec(int parameter) const {
    return model_.parameters()[static_cast<std::size_t>(parameter)].spec;
  }
  const Shape& shape(int parameter) const { return spec(parameter).shape; }
  bool is_small(int parameter) const {
    const std::int64_t floats = shape(parameter).count();
    return floats * sizeof(float) < limits::kSmallTensorBytes && floats <= max_floats_;
  }

  const Model& model_;
  std::int64_t max_floats_;
  std::vector<Block> blocks_;
};

void place(std::vector<Block>& blocks, std::uint32_t shards) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return blocks[a].floats > blocks[b].floats;
  });
  std::vector<std::int64_t> load(shards);
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += blocks[i].floats;
    blocks[i].shard = ShardId(static_cast<std::uint32_t>(least - load.begin()));
  }
}

/// One bucket per layer with blocks on the shard, the last layer first.
std::vector<Bucket> buckets_of(const std::vector<Block>& blocks, const std::vector<BlockId>& ids) {
  std::map<int, std::vector<BlockId>, std::greater<>> by_layer;
  for (const BlockId id : ids) by_layer[blocks[id.value()].layer].push_back(id);
  std::vector<Bucket> buckets;
  for (auto& [layer, members] : by_layer)
    buckets.push_back({static_cast<std::uint32_t>(buckets.size()), layer, std::move(members)});
  LW_CHECK(buckets.size() <= limits::kMaxBuckets, buckets.size());
  return buckets;
}

/// Calls zero(begin, end) for the floats between slices.
template <class Zero>
void for_padding(const Block& block, Zero zero) {
  std::int64_t end = 0;
  for (const BlockSlice& slice : block.slices) {
    if (slice.offset > end) zero(end, slice.offset);
    end = slice.offset + slice.floats;
  }
}

}  // namespace

void zero_padding(Executor& on, const Block& block, float* data) {
  for_padding(block, [&](std::int64_t begin, std::int64_t end) {
    on.zero(data + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

void zero_padding(const Block& block, float* data) {
  for_padding(block, [&](std::int64_t begin, std::int64_t end) {
    std::fill(data + begin, data + end, 0.0f);
  });
}

Layout::Layout(const Model& model, std::uint32_t shards, std::size_t max_block_bytes)
    : blocks_(BlockSplitter(model, max_block_bytes).split()), by_shard_(shards) {
  LW_CHECK(shards > 0 && shards <= limits::kMaxShards, shards);
  place(blocks_, shards);
  for (const Block& block : blocks_) by_shard_[block.shard.value()].push_back(block.id);
  for (const auto& ids : by_shard_) buckets_.push_back(buckets_of(blocks_, ids));
}

template <class T>
ParameterSlices<T>::ParameterSlices(const Model& model, const Layout& layout,
                                    const std::vector<T*>& blocks) {
  LW_CHECK(blocks.size() == layout.blocks().size(), blocks.size(), layout.blocks().size());
  const std::size_t parameters = model.parameters().size();
  // Per parameter: block and index of the slice in it.
  std::vector<std::vector<std::pair<BlockId, std::size_t>>> places(parameters);
  slice_of_block_.resize(blocks.size());
  for (const Block& block : layout.blocks()) {
    slice_of_block_[block.id.value()].resize(block.slices.size());
    for (std::size_t i = 0; i < block.slices.size(); ++i)
      places[static_cast<std::size_t>(block.slices[i].parameter)].push_back({block.id, i});
  }
  std::vector<std::size_t> first(parameters + 1);
  for (std::size_t p = 0; p < parameters; ++p) {
    for (const auto& [id, i] : places[p]) {
      const BlockSlice& slice = layout.block(id).slices[i];
      slice_of_block_[id.value()][i] = slices_.size();
      slices_.push_back({slice.first_row, slice.rows, blocks[id.value()] + slice.offset});
    }
    first[p + 1] = slices_.size();
  }
  for (std::size_t p = 0; p < parameters; ++p)
    views_.push_back({slices_.data() + first[p], first[p + 1] - first[p]});
}

template <class T>
void ParameterSlices<T>::set_block(const Layout& layout, BlockId id, T* data) {
  const Block& block = layout.block(id);
  for (std::size_t i = 0; i < block.slices.size(); ++i)
    slices_[slice_of_block_[id.value()][i]].data = data + block.slices[i].offset;
}

Layout balanced_layout(const Model& model, std::uint32_t shards) {
  const auto bytes = static_cast<std::size_t>(model.parameter_count()) * sizeof(float);
  const auto share = std::max<std::size_t>(bytes / shards, limits::kSmallTensorBytes);
  return Layout(model, shards, std::min(limits::kMaxBlockBytes, share));
}

template class ParameterSlices<float>;
template class ParameterSlices<const float>;

}  // namespace leeway
