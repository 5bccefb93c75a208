#include "tensor/blob.hpp"

#include <bit>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/check.hpp"
#include "core/limits.hpp"

namespace leeway {

/// Free blocks by capacity. Capacities are powers of two and the three steps between them, so that
/// at most a fifth of a block is unused and sizes that differ a little share blocks.
class BlobPool {
 public:
  static BlobPool& host() {
    static BlobPool& pool = *new BlobPool;  // never destroyed: blobs may outlive static objects
    return pool;
  }

  Blob take(std::size_t size) {
    const std::size_t capacity = round_up(size);
    Blob::Block* block = nullptr;
    {
      std::lock_guard lock(mutex_);
      counts_.bytes_in_use += capacity;
      if (auto& free = free_[capacity]; !free.empty()) {
        block = free.back();
        free.pop_back();
        counts_.bytes_kept -= capacity;
        ++counts_.reuses;
      } else {
        ++counts_.system_allocations;
      }
    }
    if (!block) block = fresh(capacity);
    block->size = size;
    block->references.store(1, std::memory_order_relaxed);
    return Blob(block);
  }

  void give_back(Blob::Block* block) {
    {
      std::lock_guard lock(mutex_);
      counts_.bytes_in_use -= block->capacity;
      if (counts_.bytes_kept + block->capacity <= limits::kPoolKeepBytes) {
        counts_.bytes_kept += block->capacity;
        free_[block->capacity].push_back(block);
        return;
      }
    }
    ::operator delete (block->bytes, std::align_val_t{kAlignment});
    delete block;
  }

  PoolCounts counts() {
    std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  static std::size_t round_up(std::size_t size) {
    if (size <= kAlignment) return kAlignment;
    const std::size_t step = std::bit_floor(size - 1) / 4;
    const std::size_t unit = step < kAlignment ? kAlignment : step;
    return (size + unit - 1) / unit * unit;
  }

  Blob::Block* fresh(std::size_t capacity) {
    auto* block = new Blob::Block;
    block->bytes = static_cast<std::byte*>(::operator new (capacity, std::align_val_t{kAlignment}));
    block->capacity = capacity;
    block->pool = this;
    return block;
  }

  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<Blob::Block*>> free_;
  PoolCounts counts_;
};

Blob Blob::allocate(std::size_t bytes) {
  return BlobPool::host().take(bytes);
}

void Blob::reset() {
  if (auto* block = std::exchange(block_, nullptr);
      block && block->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    block->pool->give_back(block);
}

PoolCounts host_pool_counts() {
  return BlobPool::host().counts();
}

}  // namespace leeway
