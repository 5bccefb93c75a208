#include "transport/send_queue.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "messages/blobs.hpp"

namespace leeway::transport {

void SendQueue::put(Address from, Address to, Message message) {
  LW_CHECK(message.header().size_bytes() <= limits::kMaxHeaderBytes, message.header().size());
  LW_CHECK(message.blobs().size() <= limits::kMaxBlobs, message.blobs().size());
  Lane& lane = !lender_ && has_large_blobs(message) ? bulk_ : small_;
  const std::uint64_t order = orders_[{from, to}]++;
  lane.waiting.push_back({from, to, order, std::move(message)});
}

std::optional<SendQueue::Sending> SendQueue::next_small() {
  while (!small_.waiting.empty()) {
    const Message& message = small_.waiting.front().message;
    // About the size of the letter, without the loans.
    const std::uint64_t least = message.header().size_bytes() + message.blobs().size() * 8;
    if (under_way_ > 0 && under_way_ + least > window_) return std::nullopt;
    auto packing = pack_into_letter(message, lender_);
    if (packing) {
      const std::uint64_t cost = letter_bytes(message, *packing);
      under_way_ += cost;
      return send(small_, std::move(*packing), cost);
    }
    bulk_.waiting.push_back(std::move(small_.waiting.front()));
    small_.waiting.pop_front();
  }
  return std::nullopt;
}

std::optional<SendQueue::Sending> SendQueue::next_bulk() {
  if (bulk_.waiting.empty()) return std::nullopt;
  return send(bulk_, pack_for_bulk(bulk_.waiting.front().message), 0);
}

SendQueue::Sending SendQueue::send(Lane& lane, Packing packing, std::uint64_t cost) {
  Parcel parcel = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  lane.sent.push_back({parcel, cost});
  ++messages_;
  bytes_ += parcel.message.header().size_bytes() + blob_bytes(parcel.message);
  return {std::move(parcel), std::move(packing)};
}

bool SendQueue::is_possible(const Lane& lane, std::uint64_t received) {
  return received >= lane.received && received - lane.received <= lane.sent.size();
}

void SendQueue::acknowledge(Lane& lane, std::uint64_t received) {
  for (; lane.received < received; ++lane.received) {
    under_way_ -= lane.sent.front().cost;
    lane.sent.pop_front();
  }
}

bool SendQueue::acknowledge(const LaneCounts& received) {
  if (!is_possible(small_, received.small) || !is_possible(bulk_, received.bulk)) return false;
  acknowledge(small_, received.small);
  acknowledge(bulk_, received.bulk);
  return true;
}

void SendQueue::repeat(Lane& lane) {
  for (; !lane.sent.empty(); lane.sent.pop_back())
    lane.waiting.push_front(std::move(lane.sent.back().parcel));
}

bool SendQueue::restart(const LaneCounts& received) {
  if (!acknowledge(received)) return false;
  repeat(small_);
  repeat(bulk_);
  under_way_ = 0;
  return true;
}

void SendQueue::clear() {
  for (Lane* lane : {&small_, &bulk_}) {
    lane->waiting.clear();
    lane->sent.clear();
  }
  orders_.clear();
  under_way_ = 0;
}

}  // namespace leeway::transport
