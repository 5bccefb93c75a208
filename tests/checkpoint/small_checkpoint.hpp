#pragma once
// A small model with random weights, and its checkpoint.
#include <cstring>

#include "checkpoint/store.hpp"
#include "core/check.hpp"
#include "core/rng.hpp"

namespace leeway::test {

struct SmallCheckpoint {
  /// `shards` and small blocks, so that a parameter is split by rows. `slots`: of the optimizer.
  explicit SmallCheckpoint(std::uint32_t shards, int slots = 1, std::size_t block_bytes = 128)
      : model(*Model::build({plan::Linear{12}, plan::Relu{}, plan::Linear{3}},
                            plan::Loss::softmax_cross_entropy, Shape{5}, 3, 0)),
        layout(*model, shards, block_bytes) {
    Rng rng(7);
    for (const Block& block : layout.blocks()) {
      checkpoint::StoredBlock& stored = blocks.emplace_back();
      stored.block = &block;
      for (int i = 0; i <= slots; ++i) {
        Blob blob = Blob::floats(block.floats);
        for (std::int64_t at = 0; at < block.floats; ++at)
          blob.mutable_floats()[at] = static_cast<float>(rng.uniform());
        if (i == 0) {
          stored.weights = std::move(blob);
        } else {
          stored.slots.push_back(std::move(blob));
        }
      }
    }
    plan.name = "small";
  }

  /// Writes the files of all shards and the manifest.
  Status write(const checkpoint::Store& store, std::uint64_t number, std::uint32_t keep = 3) const {
    checkpoint::Manifest manifest{.format = checkpoint::kFormat,
                                  .contents = {checkpoint::kWeights, checkpoint::kOptimizer},
                                  .leeway = "0.1.0",
                                  .run = "small",
                                  .number = number};
    for (std::uint32_t shard = 0; shard < layout.shards(); ++shard) {
      std::vector<checkpoint::StoredBlock> mine;
      for (const auto& stored : blocks)
        if (stored.block->shard == ShardId(shard)) mine.push_back(stored);
      const auto files = store.write_tensors(number, ShardId(shard), *model, mine);
      if (!files) return files.error();
      manifest.files.insert(manifest.files.end(), files->begin(), files->end());
    }
    for (const auto& stored : blocks) {
      checkpoint::BlockState& state = manifest.blocks.emplace_back();
      state.version = Version(static_cast<std::int64_t>(number));
      for (const auto& slice : stored.block->slices)
        state.slices.push_back({model->parameters()[static_cast<std::size_t>(slice.parameter)].name,
                                slice.first_row, slice.rows});
    }
    return store.commit(manifest, plan, keep);
  }

  std::shared_ptr<const Model> model;
  Layout layout;
  std::vector<checkpoint::StoredBlock> blocks;
  Plan plan;
};

/// Throws unless the loaded parameters are those that were written.
inline void require_same(const SmallCheckpoint& written,
                         const std::vector<checkpoint::ParameterState>& loaded) {
  LW_CHECK(loaded.size() == written.model->parameters().size());
  for (const auto& stored : written.blocks)
    for (const auto& slice : stored.block->slices) {
      const auto& state = loaded[static_cast<std::size_t>(slice.parameter)];
      const auto same = [&](const Blob& block, const checkpoint::Values& whole) {
        return std::memcmp(block.as_floats() + slice.offset, whole.as_floats() + slice.first,
                           static_cast<std::size_t>(slice.floats) * sizeof(float)) == 0;
      };
      LW_CHECK(same(stored.weights, state.weights), slice.parameter);
      LW_CHECK(state.slots.size() == stored.slots.size());
      for (std::size_t slot = 0; slot < state.slots.size(); ++slot)
        LW_CHECK(same(stored.slots[slot], state.slots[slot]), slice.parameter, slot);
    }
}

}  // namespace leeway::test
