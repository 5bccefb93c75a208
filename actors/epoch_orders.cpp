#include "actors/epoch_orders.hpp"

#include <algorithm>
#include <utility>

#include "core/rng.hpp"
#include "models/datasets/permutation.hpp"

namespace leeway {
namespace {

/// The number of orders to keep. Many workers on few samples, and shares of unequal sizes, are many
/// epochs apart.
std::size_t most_kept(std::int64_t size, const DataSplit* split) {
  constexpr std::size_t kLeast = 3, kBytes = 32u << 20;
  const std::size_t shares = split ? split->shares() : 1;
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(std::int64_t) / shares;
  return std::max(kLeast * shares, kBytes / std::max<std::size_t>(1, bytes));
}

}  // namespace

EpochOrders::EpochOrders(std::int64_t size, std::uint64_t seed,
                         std::shared_ptr<const DataSplit> split)
    : size_(size), seed_(seed), split_(std::move(split)), most_(most_kept(size, split_.get())) {}

EpochOrders::Order EpochOrders::of(Epoch epoch, std::uint32_t share) {
  std::lock_guard lock(mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->epoch != epoch || kept->share != share) continue;
    std::rotate(kept, kept + 1, kept_.end());
    return kept_.back().order;
  }
  auto order = std::make_shared<const std::vector<std::int64_t>>(made(epoch, share));
  if (kept_.size() == most_) kept_.pop_front();
  kept_.push_back({epoch, share, order});
  return order;
}

std::vector<std::int64_t> EpochOrders::samples(Epoch epoch, std::int64_t begin, std::int64_t end) {
  const std::uint32_t share = split_ ? split_->share_of(begin) : 0;
  const std::int64_t first = split_ ? split_->begins[share] : 0;
  const Order order = of(epoch, share);
  return {order->begin() + (begin - first), order->begin() + (end - first)};
}

std::vector<std::int64_t> EpochOrders::made(Epoch epoch, std::uint32_t share) const {
  if (!split_) return epoch_permutation(size_, seed_, epoch);
  // Each share has its own stream.
  auto order = epoch_permutation(split_->size_of(share), mix64(seed_ ^ share), epoch);
  const auto begin = static_cast<std::size_t>(split_->begins[share]);
  for (std::int64_t& place : order)
    place = split_->samples[begin + static_cast<std::size_t>(place)];
  return order;
}

}  // namespace leeway
