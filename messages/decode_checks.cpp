// Checks of decoded messages whose fields depend on each other: check() of the structs that are
// $checked in the schemas.
#include "messages/envelope.hpp"
#include "messages/generator/malformed.hpp"
#include "messages/node.hpp"

namespace leeway::msg {

using wire::require;

namespace {

void require_data(const std::vector<BlockData>& blocks) {
  for (const BlockData& block : blocks)
    require(bool(block.data), "block ", block.block, " has no data");
}

void require_order(std::int64_t begin, std::int64_t end) {
  require(begin <= end, "end is ", end, ", must not be before begin ", begin);
}

}  // namespace

void check(const Pull& message) {
  require(message.own_clock.value() <= message.iteration.value(), "own_clock is ",
          message.own_clock, ", must not be beyond the iteration ", message.iteration);
}

void check(const Weights& message) {
  require_data(message.blocks);
}

void check(const Push& message) {
  wire::require_below(message.bucket, message.bucket_count, "bucket");
  if (message.kind != Push::Kind::empty) return require_data(message.blocks);
  for (const BlockData& block : message.blocks)
    require(!block.data, "block ", block.block, " has data in an empty push");
}

void check(const SnapshotState& message) {
  require_data(message.blocks);
  for (const BlockData& block : message.blocks)
    require(block.codec == CodecId::none, "block ", block.block, " of a snapshot is encoded");
}

void check(const StoredBlock& message) {
  require(message.weights.codec == CodecId::none, "block ", message.weights.block, " is encoded");
  for (const StageTensor& slot : message.slots)
    require(slot.codec == CodecId::none, "a slot of block ", message.weights.block, " is encoded");
  for (const PulledVersion& one : message.pulled)
    require(one.weights.codec == CodecId::none, "a version of block ", message.weights.block,
            " is encoded");
}

void check(const Lease& message) {
  require_order(message.begin, message.end);
}

void check(const GroupShare& message) {
  require_order(message.begin, message.end);
  require_data(message.blocks);
}

void check(const MiniBatch& message) {
  require_order(message.begin, message.end);
}

}  // namespace leeway::msg

namespace leeway::node {

using wire::require;

namespace {

constexpr std::uint32_t kNoNode = 0xffffffff;
constexpr std::int64_t kMostFloats = std::int64_t{1} << 32;  // of one sample

}  // namespace

void check(const Ask& message) {
  const std::size_t nodes = message.nodes.size();
  wire::require_below(message.self, nodes, "self");
  for (const std::uint32_t node : message.shards)
    wire::require_below(node, nodes, "node of a shard");
  for (const std::uint32_t node : message.workers)
    if (node != kNoNode) wire::require_below(node, nodes, "node of a worker");
  for (const std::uint32_t node : message.standbys)
    if (node != kNoNode) wire::require_below(node, nodes, "node of a standby");
}

void check(const DataMark& message) {
  std::int64_t floats = 1;
  for (const std::int64_t extent : message.shape.extents()) {
    require(extent <= kMostFloats / floats, "shape is ", message.shape,
            ", a sample must have at most ", kMostFloats, " numbers");
    floats *= extent;
  }
  require(message.classes < (1u << 31), "classes is ", message.classes, ", must be below 2^31");
  require((message.classes > 0) != (message.targets > 0), "classes is ", message.classes,
          " and targets is ", message.targets, ", exactly one of them must be 0");
  require(message.targets <= kMostFloats, "targets is ", message.targets, ", must be at most ",
          kMostFloats);
}

}  // namespace leeway::node
