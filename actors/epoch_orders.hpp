#pragma once
// EpochOrders: the order of the samples in each epoch, computed once and shared by all workers of a
// process.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/ids.hpp"
#include "models/datasets/data_split.hpp"

namespace leeway {

/// Thread-safe. Keeps the most recently used orders and recomputes older ones.
class EpochOrders {
 public:
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;
  /// `split`: shares that follow each other in every order, each permuted by itself; null: one
  /// share.
  EpochOrders(std::int64_t size, std::uint64_t seed,
              std::shared_ptr<const DataSplit> split = nullptr);

  /// The seeded permutation of an epoch: of all samples, or of those of a share.
  Order of(Epoch epoch, std::uint32_t share = 0);
  /// The samples at positions [begin, end) of an epoch, which belong to one share.
  std::vector<std::int64_t> samples(Epoch epoch, std::int64_t begin, std::int64_t end);

 private:
  struct Kept {
    Epoch epoch;
    std::uint32_t share;
    Order order;
  };
  std::vector<std::int64_t> made(Epoch epoch, std::uint32_t share) const;

  const std::int64_t size_;
  const std::uint64_t seed_;
  const std::shared_ptr<const DataSplit> split_;
  const std::size_t most_;  // kept
  std::mutex mutex_;
  std::deque<Kept> kept_;  // the most recently used last
};

}  // namespace leeway
