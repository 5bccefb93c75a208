#pragma once
// Books: a T for each worker at each shard, for checkers that look one up in every step.
#include <vector>

#include "core/address.hpp"
#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway::sim {

template <class T>
class Books {
 public:
  /// Made where there is none yet.
  T& at(Address shard, WorkerId worker) {
    LW_CHECK(shard.index < limits::kMaxShards && worker.value() < limits::kMaxWorkers, shard,
             worker);
    if (shards_.size() <= shard.index) shards_.resize(shard.index + 1);
    auto& workers = shards_[shard.index];
    if (workers.size() <= worker.value()) workers.resize(worker.value() + 1);
    return workers[worker.value()];
  }
  /// Null where none was made.
  const T* find(Address shard, WorkerId worker) const {
    if (shards_.size() <= shard.index) return nullptr;
    const auto& workers = shards_[shard.index];
    return worker.value() < workers.size() ? &workers[worker.value()] : nullptr;
  }

 private:
  std::vector<std::vector<T>> shards_;
};

}  // namespace leeway::sim
