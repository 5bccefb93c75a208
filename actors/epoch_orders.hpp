#pragma once
// EpochOrders: the order of the samples in each epoch, computed once and shared by all workers of a
// process.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/ids.hpp"

namespace leeway {

/// Thread-safe. Keeps the orders of the most recently used epochs and recomputes older ones.
class EpochOrders {
 public:
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;
  EpochOrders(std::int64_t size, std::uint64_t seed)
      : size_(size),
        seed_(seed),
        most_(std::max(kLeast, kBytes / sizeof(std::int64_t) /
                                   std::max<std::size_t>(1, static_cast<std::size_t>(size)))) {}

  /// The seeded permutation of 0..size-1 of an epoch.
  Order of(Epoch epoch);

 private:
  /// Many workers on a small data set are many epochs apart.
  static constexpr std::size_t kLeast = 3, kBytes = 32u << 20;
  const std::int64_t size_;
  const std::uint64_t seed_;
  const std::size_t most_;  // kept
  std::mutex mutex_;
  std::deque<std::pair<Epoch, Order>> kept_;
};

}  // namespace leeway
