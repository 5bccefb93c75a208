#include "cluster/inbound.hpp"

#include <algorithm>
#include <shared_mutex>

#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway::cluster {
namespace {

/// Most bytes of letters that wait for earlier ones or for their chunks. A pair of actors has at
/// most one of the latter, of some kilobytes, and the window is small beside this.
constexpr std::uint64_t kMaxQueuedBytes = 1u << 30;

}  // namespace

std::span<std::byte> Arrival::next_piece(std::uint64_t most) {
  LW_CHECK(most > 0 && most <= left, most, left);
  while (next.offset == sizes[next.blob]) next = {next.blob + 1, 0};
  Blob& blob = blobs[next.blob];
  if (!blob) blob = Blob::allocate(sizes[next.blob]);
  const std::uint64_t count = std::min(most, sizes[next.blob] - next.offset);
  const std::span piece(blob.mutable_data() + next.offset, count);
  next.offset += count;
  left -= count;
  return piece;
}

Message Arrival::message() {
  return Message(header, std::move(blobs));
}

bool Inbound::begin(std::uint64_t number, std::shared_ptr<Arrival> arrival) {
  std::lock_guard lock(mutex_);
  const std::pair pair(arrival->from, arrival->to);
  const bool full = begun_.size() >= limits::kMaxArrivals || queued_bytes_ > kMaxQueuedBytes ||
                    (queues_.size() >= limits::kMaxArrivals && !queues_.contains(pair));
  if (full || begun_.contains(number)) return false;
  Queue& queue = queues_[pair];
  const bool whole = arrival->left == 0;
  if (arrival->order < queue.next ||
      !queue.by_order.emplace(arrival->order, Waiting{arrival, whole}).second)
    return false;
  queued_bytes_ += arrival->held;
  if (!whole) begun_.emplace(number, std::move(arrival));
  return true;
}

std::shared_ptr<Arrival> Inbound::find(std::uint64_t number) const {
  std::lock_guard lock(mutex_);
  const auto found = begun_.find(number);
  return found == begun_.end() ? nullptr : found->second;
}

void Inbound::end(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  const auto found = begun_.find(number);
  if (found == begun_.end()) return;
  const Arrival& arrival = *found->second;
  queues_.at({arrival.from, arrival.to}).by_order.at(arrival.order).whole = true;
  begun_.erase(found);
}

std::shared_ptr<Arrival> Inbound::take(Address from, Address to) {
  std::lock_guard lock(mutex_);
  const auto found = queues_.find({from, to});
  if (found == queues_.end()) return nullptr;
  Queue& queue = found->second;
  const auto first = queue.by_order.find(queue.next);
  if (first == queue.by_order.end() || !first->second.whole) return nullptr;
  auto arrival = std::move(first->second.arrival);
  queue.by_order.erase(first);
  ++queue.next;
  ++taken_;
  queued_bytes_ -= arrival->held;
  return arrival;
}

std::uint64_t Inbound::taken() const {
  std::lock_guard lock(mutex_);
  return taken_;
}

namespace inbounds {
namespace {

struct All {
  std::shared_mutex mutex;
  std::map<Token, std::shared_ptr<Inbound>> by_token;
};
All& all() {
  static All* const everything = new All;  // connections may outlive main()
  return *everything;
}

}  // namespace

std::shared_ptr<Inbound> open(Token token) {
  auto inbound = std::make_shared<Inbound>(token);
  std::lock_guard lock(all().mutex);
  LW_CHECK(all().by_token.emplace(token, inbound).second);
  return inbound;
}

std::shared_ptr<Inbound> find(Token token) {
  std::shared_lock lock(all().mutex);
  const auto found = all().by_token.find(token);
  return found == all().by_token.end() ? nullptr : found->second;
}

void close(Token token) {
  std::lock_guard lock(all().mutex);
  all().by_token.erase(token);
}

}  // namespace inbounds
}  // namespace leeway::cluster
