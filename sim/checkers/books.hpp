#pragma once
// Books: a T for each worker at each shard, with fast lookup.
#include <vector>

#include "core/address.hpp"
#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway::sim {

template <class T>
class Books {
 public:
  /// Creates the T at the first access.
  T& at(Address shard, WorkerId worker) {
    LW_CHECK(shard.index < limits::kMaxShards && worker.value() < limits::kMaxWorkers, shard,
             worker);
    if (shards_.size() <= shard.index) shards_.resize(shard.index + 1);
    auto& workers = shards_[shard.index];
    if (workers.size() <= worker.value()) workers.resize(worker.value() + 1);
    return workers[worker.value()];
  }
  /// Null before the first access by at().
  const T* find(Address shard, WorkerId worker) const {
    if (shards_.size() <= shard.index) return nullptr;
    const auto& workers = shards_[shard.index];
    return worker.value() < workers.size() ? &workers[worker.value()] : nullptr;
  }

 private:
  std::vector<std::vector<T>> shards_;
};

}  // namespace leeway::sim
