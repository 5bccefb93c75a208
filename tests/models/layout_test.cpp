#include "models/layout.hpp"

#include <rapidcheck/catch.h>

#include <algorithm>
#include <set>

#include "core/limits.hpp"
#include "tests/models/support.hpp"

using namespace leeway;
using namespace leeway::test;

namespace {

std::shared_ptr<const Model> random_model() {
  const auto widths =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 90));
  Layers layers;
  for (const auto width : widths) {
    layers.push_back(linear(width));
    layers.push_back(relu());
  }
  layers.push_back(linear(3));
  return classifier(layers, {*rc::gen::inRange<std::int64_t>(1, 120)}, 3);
}

bool same(const Layout& a, const Layout& b) {
  return std::equal(a.blocks().begin(), a.blocks().end(), b.blocks().begin(), b.blocks().end(),
                    [](const Block& x, const Block& y) {
                      return x.id == y.id && x.shard == y.shard && x.floats == y.floats &&
                             x.layer == y.layer && x.slices.size() == y.slices.size();
                    });
}

}  // namespace

TEST_CASE("every row of every parameter lies in exactly one block, without overlap", "[layout]") {
  rc::prop("rows are covered once", [] {
    const auto model = random_model();
    const auto max_bytes = static_cast<std::size_t>(*rc::gen::inRange(1, 40000));
    const Layout layout(*model, 1, max_bytes);
    std::vector<std::vector<int>> covered;
    for (const auto& p : model->parameters())
      covered.emplace_back(static_cast<std::size_t>(p.spec.shape.rows()));
    for (const Block& block : layout.blocks()) {
      std::int64_t end = 0;
      for (const auto& slice : block.slices) {
        const auto& parameter = model->parameters()[static_cast<std::size_t>(slice.parameter)];
        RC_ASSERT(parameter.layer == block.layer);
        RC_ASSERT(slice.offset % 16 == 0);
        RC_ASSERT(slice.offset >= end);
        end = slice.offset + slice.rows * parameter.spec.shape.row_count();
        for (std::int64_t r = 0; r < slice.rows; ++r)
          ++covered[static_cast<std::size_t>(slice.parameter)]
                   [static_cast<std::size_t>(slice.first_row + r)];
      }
      RC_ASSERT(block.floats == end);
      const BlockSlice& first = block.slices[0];
      const auto& spec = model->parameters()[static_cast<std::size_t>(first.parameter)].spec;
      const bool cannot_be_split =
          block.slices.size() == 1 && (first.rows == 1 || spec.shape.rank() == 1);
      RC_ASSERT(cannot_be_split || static_cast<std::size_t>(block.floats) * sizeof(float) <=
                                       std::max<std::size_t>(max_bytes, 64));
    }
    for (const auto& rows : covered)
      for (const int times : rows) RC_ASSERT(times == 1);
  });
}

TEST_CASE("the floats of any two shards differ by at most the largest block", "[layout]") {
  rc::prop("shards are balanced", [] {
    const auto model = random_model();
    const auto shards = *rc::gen::inRange<std::uint32_t>(1, 9);
    const auto max_bytes = static_cast<std::size_t>(*rc::gen::inRange(64, 40000));
    const Layout layout(*model, shards, max_bytes);
    RC_ASSERT(layout.shards() == shards);
    std::vector<std::int64_t> load(shards);
    std::int64_t largest = 0, seen = 0;
    for (std::uint32_t s = 0; s < shards; ++s)
      for (const BlockId id : layout.blocks_of(ShardId(s))) {
        RC_ASSERT(layout.block(id).shard == ShardId(s));
        load[s] += layout.block(id).floats;
        largest = std::max(largest, layout.block(id).floats);
        ++seen;
      }
    RC_ASSERT(seen == static_cast<std::int64_t>(layout.blocks().size()));
    const auto [low, high] = std::minmax_element(load.begin(), load.end());
    RC_ASSERT(*high - *low <= largest);
    RC_ASSERT(same(layout, Layout(*model, shards, max_bytes)));
  });
}

TEST_CASE("the buckets of a shard hold each block once, one layer each, the last layer first",
          "[layout]") {
  rc::prop("buckets are in the order of backward", [] {
    const auto model = random_model();
    const Layout layout(*model, *rc::gen::inRange<std::uint32_t>(1, 6),
                        static_cast<std::size_t>(*rc::gen::inRange(64, 20000)));
    for (std::uint32_t s = 0; s < layout.shards(); ++s) {
      std::vector<BlockId> all;
      int last_layer = model->layers();
      std::uint32_t index = 0;
      for (const Bucket& bucket : layout.buckets(ShardId(s))) {
        RC_ASSERT(bucket.index == index++);
        RC_ASSERT(bucket.layer < last_layer);
        last_layer = bucket.layer;
        for (const BlockId id : bucket.blocks) {
          RC_ASSERT(layout.block(id).layer == bucket.layer);
          all.push_back(id);
        }
      }
      std::sort(all.begin(), all.end());
      RC_ASSERT(all == layout.blocks_of(ShardId(s)));
    }
  });
}

TEST_CASE("weight and bias of a linear layer are one block, unless the weight is split",
          "[layout]") {
  const auto model = classifier({linear(512), relu(), linear(256), relu(), linear(10)}, {784}, 10);
  const Layout whole(*model, 2, limits::kMaxBlockBytes);
  REQUIRE(whole.blocks().size() == 3);
  for (const Block& block : whole.blocks()) REQUIRE(block.slices.size() == 2);
  REQUIRE(whole.block(BlockId(0)).shard == ShardId(0));
  REQUIRE(whole.block(BlockId(1)).shard == ShardId(1));
  const Layout split(*model, 2, 512 << 10);  // the first weight, 1.6 MB: four blocks of 128 rows
  REQUIRE(split.blocks().size() == 7);
  for (std::uint32_t i = 0; i < 4; ++i) REQUIRE(split.block(BlockId(i)).slices[0].rows == 128);
  REQUIRE(split.block(BlockId(3)).slices.size() == 2);  // the bias joins the last block
}

TEST_CASE("a vector is never split, however small the blocks", "[layout]") {
  const auto model = classifier({linear(200), linear(3)}, {2}, 3);
  const Layout layout(*model, 1, 64);  // 16 floats
  std::vector<std::vector<std::int64_t>> rows(model->parameters().size());
  for (const Block& block : layout.blocks())
    for (const auto& slice : block.slices)
      rows[static_cast<std::size_t>(slice.parameter)].push_back(slice.rows);
  REQUIRE(rows[0].size() == 25);
  REQUIRE(rows[1] == std::vector<std::int64_t>{200});
  REQUIRE(rows[3] == std::vector<std::int64_t>{3});
}

TEST_CASE("statistics and trained parameters do not share blocks", "[layout]") {
  const auto model = classifier({plan::BatchNorm{.momentum = 0.25}, linear(3)}, {5}, 3);
  // Small blocks, and blocks with room for all four parameters of batch_norm.
  for (const std::size_t max_block_bytes : {std::size_t{64}, limits::kMaxBlockBytes}) {
    const Layout layout(*model, 2, max_block_bytes);
    std::vector<int> statistics;
    for (const Block& block : layout.blocks())
      for (const auto& slice : block.slices) {
        const auto& spec = model->parameters()[static_cast<std::size_t>(slice.parameter)].spec;
        REQUIRE(block.average == spec.average);
        if (block.average > 0) statistics.push_back(slice.parameter);
      }
    REQUIRE(statistics == std::vector<int>{2, 3});
  }
  const Layout layout(*model, 1, limits::kMaxBlockBytes);
  REQUIRE(layout.blocks().size() == 3);
  REQUIRE(layout.block(BlockId(1)).average == 0.25);
  REQUIRE(layout.block(BlockId(1)).slices.size() == 2);
}

TEST_CASE("the largest block is placed first, and the lower shard wins a tie", "[layout]") {
  const auto model = classifier({linear(10), linear(100), linear(200), linear(3)}, {4}, 3);
  const Layout layout(*model, 2, limits::kMaxBlockBytes);
  REQUIRE(layout.blocks_of(ShardId(0)) == std::vector<BlockId>{BlockId(2)});
  REQUIRE(layout.blocks_of(ShardId(1)) == std::vector<BlockId>{BlockId(0), BlockId(1), BlockId(3)});
}

TEST_CASE("with more shards than blocks, some shards have no block", "[layout]") {
  const auto model = classifier({linear(3)}, {4}, 3);
  const Layout layout(*model, 5, limits::kMaxBlockBytes);
  REQUIRE(layout.buckets(ShardId(0)).size() == 1);
  for (std::uint32_t s = 1; s < 5; ++s) REQUIRE(layout.buckets(ShardId(s)).empty());
}

TEST_CASE("set_block points the slices of a block at new memory", "[layout]") {
  const auto model = classifier({linear(3)}, {4}, 3);
  const Layout layout(*model, 1, limits::kMaxBlockBytes);
  Floats first(64), second(64);
  ParameterSlices<float> slices(*model, layout, {first.data()});
  REQUIRE(slices.views()[0][0].data == first.data());
  REQUIRE(slices.views()[1][0].data == first.data() + 16);
  slices.set_block(layout, BlockId(0), second.data());
  const ParameterSlices<float> moved = std::move(slices);
  REQUIRE(moved.views()[0][0].data == second.data());
  REQUIRE(moved.views()[1][0].data == second.data() + 16);
}

TEST_CASE("zero_padding zeroes only the padding between slices", "[layout]") {
  const auto model = classifier({linear(3)}, {4}, 3);  // 12 floats, 4 of padding, 3 floats
  const Layout layout(*model, 1, limits::kMaxBlockBytes);
  Floats memory(19, 1.0f);
  zero_padding(*make_cpu_executor(), layout.block(BlockId(0)), memory.data());
  for (std::size_t i = 0; i < memory.size(); ++i)
    REQUIRE(memory[i] == (i >= 12 && i < 16 ? 0.0f : 1.0f));
}
