#include "cluster/outbound.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway::cluster {
namespace {

constexpr std::uint64_t kBulkChunkBytes = 1u << 20;
/// Frames given ahead, so that the sending thread always has a next one.
constexpr int kBulkAhead = 3;

}  // namespace
Outbound::Outbound(std::uint64_t window_bytes, std::uint64_t chunk_bytes)
    : window_(window_bytes),
      chunk_(std::max<std::uint64_t>(1, std::min(chunk_bytes, window_bytes / 4))) {
  LW_CHECK(window_bytes > 0);
}

void Outbound::put(Address from, Address to, Message message) {
  LW_CHECK(message.header().size_bytes() <= limits::kMaxHeaderBytes, message.header().size());
  LW_CHECK(message.blobs().size() <= limits::kMaxBlobs, message.blobs().size());
  Pair& pair = pairs_[{from, to}];
  if (pair.messages.empty()) {
    pair.from = from;
    pair.to = to;
    turns_.push_back(&pair);
  }
  pair.messages.push_back(std::move(message));
  ++waiting_;
}

bool Outbound::room_for(std::uint64_t cost) const {
  // The peer sends credit for each quarter of the window. A frame larger than three quarters, with
  // a huge header, would wait for ever if it counted in full.
  return under_way_ + std::min(cost, window_ - window_ / 4) <= window_;
}

std::optional<Frame> Outbound::next() {
  auto frame = next_small();
  return frame ? std::move(frame) : next_bulk();
}

std::optional<Frame> Outbound::next_small() {
  while (!turns_.empty()) {
    Pair& pair = *turns_.front();
    if (pair.begun) return chunk(pair, chunk_);
    if (!pack_first(pair)) return std::nullopt;
    if (!pair.packing->bulk()) return letter(pair);
    turns_.pop_front();
    bulk_turns_.push_back(&pair);
  }
  return std::nullopt;
}

std::optional<Frame> Outbound::next_bulk() {
  if (bulk_turns_.empty() || bulk_ahead_ == kBulkAhead) return std::nullopt;
  ++bulk_ahead_;
  Pair& pair = *bulk_turns_.front();
  return pair.begun ? chunk(pair, kBulkChunkBytes) : letter(pair);
}

/// False: the window has no room for its letter.
bool Outbound::pack_first(Pair& pair) {
  const Message& message = pair.messages.front();
  const auto cost = [&](const Packing& packing) {
    return letter_cost(message.header().size(), message.blobs().size(), packing.in_letter);
  };
  Packing packing = pack(message, nullptr, bulk_);
  if (!packing.bulk() && !room_for(cost(packing))) return false;
  // Lent bytes take no room in the connection.
  if (lender_) packing = pack(message, lender_, bulk_);
  if (!packing.bulk()) under_way_ += cost(packing);
  pair.packing = std::make_shared<const Packing>(std::move(packing));
  return true;
}

Frame Outbound::letter(Pair& pair) {
  ++begun_;
  pair.begun = true;
  pair.number = next_number_++;
  pair.left = pair.packing->behind;
  pair.place = {};
  Frame frame;
  frame.kind = FrameKind::letter;
  frame.number = pair.number;
  frame.order = pair.next_order++;
  frame.from = pair.from;
  frame.to = pair.to;
  frame.message = pair.messages.front();
  frame.packing = pair.packing;
  frame.bulk = pair.packing->bulk();
  bytes_ += frame.message.header().size_bytes() + pair.packing->in_letter;
  end_turn(pair, pair.left == 0);
  return frame;
}

std::optional<Frame> Outbound::chunk(Pair& pair, std::uint64_t most) {
  const bool bulk = pair.packing->bulk();
  const std::uint64_t bytes = std::min(most, pair.left);
  if (!bulk && !room_for(chunk_cost(bytes))) return std::nullopt;
  if (!bulk) under_way_ += chunk_cost(bytes);
  Frame frame;
  frame.kind = FrameKind::chunk;
  frame.number = pair.number;
  frame.message = pair.messages.front();
  frame.packing = pair.packing;
  frame.bulk = bulk;
  frame.place = pair.place;
  frame.bytes = bytes;
  pair.left -= bytes;
  pair.place = advanced(frame.message, *pair.packing, pair.place, bytes);
  bytes_ += bytes;
  end_turn(pair, pair.left == 0);
  return frame;
}

void Outbound::end_turn(Pair& pair, bool message_done) {
  auto& turns = pair.packing->bulk() ? bulk_turns_ : turns_;
  turns.pop_front();
  if (!message_done) return turns.push_back(&pair);
  forget_first(pair);
  ++messages_;
  if (!pair.messages.empty()) turns_.push_back(&pair);
}

void Outbound::forget_first(Pair& pair) {
  pair.messages.pop_front();
  pair.packing = nullptr;
  pair.begun = false;
  --waiting_;
}

void Outbound::credited(std::uint64_t bytes) {
  under_way_ -= std::min(bytes, under_way_);
}

void Outbound::restart() {
  under_way_ = begun_ = 0;
  bulk_ahead_ = 0;
  turns_.clear();
  bulk_turns_.clear();
  for (auto& [addresses, pair] : pairs_) {
    if (pair.begun) forget_first(pair);
    pair.packing = nullptr;
    pair.next_order = 0;
    if (!pair.messages.empty()) turns_.push_back(&pair);
  }
}

void Outbound::clear() {
  turns_.clear();
  bulk_turns_.clear();
  pairs_.clear();
  waiting_ = under_way_ = 0;
  bulk_ahead_ = 0;
}

}  // namespace leeway::cluster
