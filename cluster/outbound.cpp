#include "cluster/outbound.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway::cluster {
namespace {

/// In a letter or with it, and behind it.
struct Sizes {
  std::uint64_t in_letter = 0, in_chunks = 0;
};
Sizes sizes_of(const Message& message, const Loans& loans) {
  Sizes sizes;
  const auto ways = ways_of(message, loans);
  for (std::size_t i = 0; i < ways.size(); ++i)
    (ways[i] == BlobWay::in_chunks ? sizes.in_chunks : sizes.in_letter) +=
        message.blobs()[i].size();
  return sizes;
}

/// The place behind the next `count` bytes of those that travel in chunks.
BlobPlace advanced(const Message& message, const Loans& loans, BlobPlace place,
                   std::uint64_t count) {
  const auto ways = ways_of(message, loans);
  while (count > 0) {
    const std::uint64_t size = message.blobs()[place.blob].size();
    const bool counts = ways[place.blob] == BlobWay::in_chunks;
    const std::uint64_t here = counts ? std::min(count, size - place.offset) : 0;
    count -= here;
    place.offset += here;
    if (count > 0) place = {place.blob + 1, 0};
  }
  return place;
}

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
  // The peer gives credit when it owes a quarter of the window; what is larger than the other three
  // quarters, a huge header, would wait for ever if it counted in full.
  return under_way_ + std::min(cost, window_ - window_ / 4) <= window_;
}

std::optional<Frame> Outbound::next() {
  if (turns_.empty()) return std::nullopt;
  Pair& pair = *turns_.front();
  return pair.begun ? chunk(pair) : letter(pair);
}

Loans Outbound::lend(const Message& message) {
  if (!lender_) return nullptr;
  const auto ways = ways_of(message);
  std::shared_ptr<std::vector<Loan>> loans;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (ways[i] != BlobWay::in_chunks) continue;
    const auto loan = lender_->lend(message.blobs()[i]);
    if (!loan) continue;
    if (!loans) loans = std::make_shared<std::vector<Loan>>(ways.size());
    (*loans)[i] = *loan;
  }
  return loans;
}

std::optional<Frame> Outbound::letter(Pair& pair) {
  const Message& message = pair.messages.front();
  const auto cost = [&](const Loans& loans) {
    return letter_cost(message.header().size(), message.blobs().size(),
                       sizes_of(message, loans).in_letter);
  };
  if (!room_for(cost(nullptr))) return std::nullopt;
  pair.loans = lend(message);  // takes no room in the connection, and so waits for none
  const auto sizes = sizes_of(message, pair.loans);
  under_way_ += cost(pair.loans);
  pair.begun = true;
  pair.number = next_number_++;
  pair.left = sizes.in_chunks;
  pair.place = {};
  bytes_ += message.header().size_bytes() + sizes.in_letter;
  Frame frame;
  frame.kind = FrameKind::letter;
  frame.number = pair.number;
  frame.from = pair.from;
  frame.to = pair.to;
  frame.message = message;
  frame.loans = pair.loans;
  end_turn(pair, pair.left == 0);
  return frame;
}

std::optional<Frame> Outbound::chunk(Pair& pair) {
  const std::uint64_t bytes = std::min(chunk_, pair.left);
  if (!room_for(chunk_cost(bytes))) return std::nullopt;
  under_way_ += chunk_cost(bytes);
  Frame frame;
  frame.kind = FrameKind::chunk;
  frame.number = pair.number;
  frame.message = pair.messages.front();
  frame.loans = pair.loans;
  frame.place = pair.place;
  frame.bytes = bytes;
  pair.left -= bytes;
  pair.place = advanced(frame.message, pair.loans, pair.place, bytes);
  bytes_ += bytes;
  end_turn(pair, pair.left == 0);
  return frame;
}

void Outbound::end_turn(Pair& pair, bool message_done) {
  turns_.pop_front();
  if (message_done) {
    pair.messages.pop_front();
    pair.begun = false;
    --waiting_;
    ++messages_;
  }
  if (!pair.messages.empty()) turns_.push_back(&pair);
}

void Outbound::credited(std::uint64_t bytes) {
  under_way_ -= std::min(bytes, under_way_);
}

void Outbound::restart() {
  under_way_ = 0;
  turns_.clear();
  for (auto& [addresses, pair] : pairs_) {
    if (pair.begun) {
      pair.messages.pop_front();
      pair.begun = false;
      --waiting_;
    }
    if (!pair.messages.empty()) turns_.push_back(&pair);
  }
}

void Outbound::clear() {
  turns_.clear();
  pairs_.clear();
  waiting_ = under_way_ = 0;
}

}  // namespace leeway::cluster
