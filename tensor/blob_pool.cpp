#include "tensor/blob_pool.hpp"

#include <bit>
#include <cstring>
#include <new>

#include "core/limits.hpp"

namespace leeway {

namespace {

constexpr std::size_t kAlignment = 64;

std::size_t round_up(std::size_t size) {
  if (size <= kAlignment) return kAlignment;
  const std::size_t step = std::bit_floor(size - 1) / 4;
  const std::size_t unit = step < kAlignment ? kAlignment : step;
  return (size + unit - 1) / unit * unit;
}

class HostPool final : public BlobPool {
 public:
  HostPool() : BlobPool({}, limits::kPoolKeepBytes, false) {}
  void read(std::byte* to, const Blob& blob) override { std::memcpy(to, blob.data(), blob.size()); }

 private:
  std::byte* system_allocate(std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
  }
  void system_free(std::byte* bytes) override {
    ::operator delete (bytes, std::align_val_t{kAlignment});
  }
};

HostPool& host_pool() {
  static HostPool& pool = *new HostPool;
  return pool;
}

}  // namespace

Blob BlobPool::take(std::size_t bytes) {
  const std::size_t capacity = round_up(bytes);
  Blob::Block* block = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (auto& free = free_[capacity]; !free.empty()) {
      block = free.back();
      free.pop_back();
      counts_.bytes_kept -= capacity;
      counts_.bytes_in_use += capacity;
      ++counts_.reuses;
    }
  }
  if (!block) {
    block = fresh(capacity);
    std::lock_guard lock(mutex_);
    counts_.bytes_in_use += capacity;
    ++counts_.system_allocations;
  }
  block->size = bytes;
  block->references.store(1, std::memory_order_relaxed);
  return Blob(block);
}

PoolCounts BlobPool::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void BlobPool::give_back(Blob::Block* block) {
  {
    std::lock_guard lock(mutex_);
    counts_.bytes_in_use -= block->capacity;
    if (counts_.bytes_kept + block->capacity <= keep_bytes_) {
      counts_.bytes_kept += block->capacity;
      free_[block->capacity].push_back(block);
      return;
    }
  }
  system_free(block->bytes);
  delete block;
}

void BlobPool::give_up_kept() {
  std::unordered_map<std::size_t, std::vector<Blob::Block*>> kept;
  {
    std::lock_guard lock(mutex_);
    kept.swap(free_);
    counts_.bytes_kept = 0;
  }
  for (auto& [capacity, blocks] : kept)
    for (auto* block : blocks) {
      system_free(block->bytes);
      delete block;
    }
}

Blob::Block* BlobPool::fresh(std::size_t capacity) {
  auto block = std::make_unique<Blob::Block>();
  try {
    block->bytes = system_allocate(capacity);
  } catch (const std::exception&) {
    give_up_kept();  // free memory of other sizes may be what is missing
    block->bytes = system_allocate(capacity);
  }
  block->capacity = capacity;
  block->device = device_;
  block->pool = this;
  if (fenced_) block->fences = std::make_unique<Fences>();
  return block.release();
}

Blob Blob::allocate(std::size_t bytes) {
  return host_pool().take(bytes);
}

void Blob::reset() {
  if (auto* block = std::exchange(block_, nullptr);
      block && block->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    block->pool->give_back(block);
}

Blob Blob::on_host() const {
  if (!block_ || device().kind != Device::Kind::cuda) return *this;
  Blob copy = allocate(size());
  block_->pool->read(copy.mutable_data(), *this);
  return copy;
}

PoolCounts host_pool_counts() {
  return host_pool().counts();
}

}  // namespace leeway
