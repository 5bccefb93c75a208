// make_valid() of the structs that are $checked in the schemas: corrects random messages with
// contradictory fields.
#include "tests/messages/any_envelope.hpp"
#include "tests/messages/any_node.hpp"

namespace leeway::test {
namespace {

void remove_empty(std::vector<msg::BlockData>& blocks) {
  std::erase_if(blocks, [](const msg::BlockData& block) { return !block.data; });
}

}  // namespace

void make_valid(msg::Pull& message) {
  message.own_clock = std::min(message.own_clock, Clock(message.iteration.value()));
}

void make_valid(msg::Weights& message) {
  remove_empty(message.blocks);
}

void make_valid(msg::Push& message) {
  message.bucket %= message.bucket_count;
  if (message.kind == msg::Push::Kind::empty)
    for (auto& block : message.blocks) block = {block.block, block.version};
}

void make_valid(msg::SnapshotState& message) {
  remove_empty(message.blocks);
}

void make_valid(msg::StoredBlock& message) {
  message.weights.codec = CodecId::none;
  for (auto& slot : message.slots) slot.codec = CodecId::none;
  for (auto& one : message.pulled) one.weights.codec = CodecId::none;
}

void make_valid(msg::GroupShare& message) {
  message.end = std::max(message.begin, message.end);
  remove_empty(message.blocks);
}

void make_valid(msg::Lease& message) {
  message.end = std::max(message.begin, message.end);
}

void make_valid(msg::MiniBatch& message) {
  message.end = std::max(message.begin, message.end);
}

void make_valid(node::Ask& message) {
  if (message.nodes.empty()) message.nodes.push_back("");
  const auto nodes = static_cast<std::uint32_t>(message.nodes.size());
  message.self %= nodes;
  for (std::uint32_t& node : message.shards) node %= nodes;
  for (std::uint32_t& node : message.standbys) node %= nodes;
  for (std::uint32_t& node : message.workers)
    if (node != 0xffffffff) node %= nodes;
}

void make_valid(node::DataMark& message) {
  std::vector<std::int64_t> extents;
  for (const std::int64_t extent : message.shape.extents()) extents.push_back(1 + extent % 255);
  message.shape = Shape(extents);
  const bool classes = message.classes % 2 == 1;
  message.classes = classes ? message.classes % (1u << 31) : 0;
  message.targets = classes ? 0 : 1 + message.targets % 1000;
}

}  // namespace leeway::test
