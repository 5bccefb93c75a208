#pragma once
// EpochOrders: the order of the samples in each epoch, computed once and shared by all workers of a
// process.
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/ids.hpp"

namespace leeway {

/// Thread-safe. Keeps the epochs asked for last; an older one is computed again.
class EpochOrders {
 public:
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;
  EpochOrders(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}

  /// The seeded permutation of 0..size-1 of an epoch.
  Order of(Epoch epoch);

 private:
  static constexpr std::size_t kKept = 3;
  const std::int64_t size_;
  const std::uint64_t seed_;
  std::mutex mutex_;
  std::deque<std::pair<Epoch, Order>> kept_;
};

}  // namespace leeway
