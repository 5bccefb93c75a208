#include "tensor/blob_pool.hpp"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "tensor/shared_arena.hpp"

namespace leeway {

namespace {

constexpr std::size_t kAlignment = 64;
/// Blocks of at least this size lie on huge pages if the system permits it: the kernel clears new
/// memory faster by such pages.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

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

  Status use_arena() {
    std::lock_guard lock(switching_);
    if (arena_) return {};
    auto memory = SharedMemory::create("leeway", limits::kArenaBytes);
    for (std::size_t bytes = limits::kArenaBytes / 2; !memory && bytes >= kSmallestArena;
         bytes /= 2)
      memory = SharedMemory::create("leeway", bytes);
    if (!memory) return memory.error();
    arena_.store(new SharedArena(std::move(*memory)), std::memory_order_release);
    free_kept_blocks();  // they lie outside the arena
    return {};
  }
  SharedArena* arena() const { return arena_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t kSmallestArena = std::size_t{1} << 30;

  std::byte* system_allocate(std::size_t bytes) override {
    if (bytes >= limits::kSharedBlobBytes)
      if (SharedArena* const shared = arena())
        if (std::byte* const block = shared->allocate(bytes)) return block;
    const bool huge = bytes >= kHugePage;
    void* block = nullptr;
    if (::posix_memalign(&block, huge ? kHugePage : kAlignment, bytes) != 0) throw std::bad_alloc();
    if (huge) (void)::madvise(block, bytes, MADV_HUGEPAGE);
    return static_cast<std::byte*>(block);
  }
  void system_free(std::byte* bytes) override {
    if (SharedArena* const shared = arena(); shared && shared->holds(bytes))
      return shared->free(bytes);
    std::free(bytes);
  }

  std::mutex switching_;
  std::atomic<SharedArena*> arena_{nullptr};
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
    block = new_block(capacity);
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

void BlobPool::free_kept_blocks() {
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

Blob::Block* BlobPool::new_block(std::size_t capacity) {
  auto block = std::make_unique<Blob::Block>();
  try {
    block->bytes = system_allocate(capacity);
  } catch (const std::exception&) {
    free_kept_blocks();  // kept blocks of other sizes may take up the memory
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

Blob Blob::copy_of(std::span<const std::byte> bytes) {
  Blob copy = allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.mutable_data(), bytes.data(), bytes.size());
  return copy;
}

void Blob::refuse_to_write() const {
  LW_CHECK(!block_->foreign, size());
  std::abort();
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

Status use_shared_arena() {
  return host_pool().use_arena();
}

const SharedArena* shared_arena() {
  return host_pool().arena();
}

std::optional<std::size_t> arena_offset(const Blob& blob) {
  const SharedArena* const arena = shared_arena();
  if (!arena || !arena->holds(blob.data())) return std::nullopt;
  return arena->offset(blob.data());
}

}  // namespace leeway
