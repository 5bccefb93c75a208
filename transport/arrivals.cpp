#include "transport/arrivals.hpp"

#include "core/limits.hpp"

namespace leeway::transport {
namespace {

/// Most bytes of letters that wait for an earlier message of their pair, which is on the bulk lane.
constexpr std::uint64_t kMaxHeldBytes = 1u << 30;

}  // namespace

bool Arrivals::add(Arrival arrival) {
  std::lock_guard lock(mutex_);
  const std::pair pair(arrival.from, arrival.to);
  if (held_bytes_ > kMaxHeldBytes ||
      (queues_.size() >= limits::kMaxArrivals && !queues_.contains(pair)))
    return false;
  Queue& queue = queues_[pair];
  if (arrival.order < queue.next) return false;
  const std::uint64_t order = arrival.order, held = arrival.held;
  if (!queue.by_order.emplace(order, std::move(arrival)).second) return false;
  held_bytes_ += held;
  return true;
}

std::optional<Arrival> Arrivals::take(Address from, Address to) {
  std::lock_guard lock(mutex_);
  const auto found = queues_.find({from, to});
  if (found == queues_.end()) return std::nullopt;
  Queue& queue = found->second;
  const auto first = queue.by_order.find(queue.next);
  if (first == queue.by_order.end()) return std::nullopt;
  Arrival arrival = std::move(first->second);
  queue.by_order.erase(first);
  ++queue.next;
  ++taken_;
  held_bytes_ -= arrival.held;
  return arrival;
}

std::uint64_t Arrivals::taken() const {
  std::lock_guard lock(mutex_);
  return taken_;
}

}  // namespace leeway::transport
