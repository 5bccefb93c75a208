#pragma once
// BlobPool: keeps freed memory of one device for reuse, because new pages are slow.
//
// Free blocks are kept by capacity. Capacities are powers of two and three steps between them: at
// most a fifth of a block is unused, and similar sizes share blocks. Pools are never destroyed,
// because blobs may outlive everything else.
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensor/blob.hpp"

namespace leeway {

struct PoolCounts {
  std::uint64_t system_allocations = 0;
  std::uint64_t reuses = 0;
  std::size_t bytes_in_use = 0;
  std::size_t bytes_kept = 0;  // free, kept for reuse
};

class BlobPool {
 public:
  /// Keeps up to `keep_bytes` of free memory. Its blobs carry fences if `fenced`.
  BlobPool(Device device, std::size_t keep_bytes, bool fenced)
      : device_(device), keep_bytes_(keep_bytes), fenced_(fenced) {}
  virtual ~BlobPool() = default;
  BlobPool(const BlobPool&) = delete;
  BlobPool& operator=(const BlobPool&) = delete;

  /// A blob of `bytes` with arbitrary contents; a reused block keeps its fences.
  Blob take(std::size_t bytes);
  PoolCounts counts() const;
  Device device() const { return device_; }

  /// Copies a blob of this pool to host memory, after all queued writes.
  virtual void read(std::byte* to, const Blob& blob) = 0;

 protected:
  /// 64-byte aligned memory; throws if the system has none.
  virtual std::byte* system_allocate(std::size_t bytes) = 0;
  virtual void system_free(std::byte* bytes) = 0;
  /// Returns all free memory to the system.
  void free_kept_blocks();

 private:
  friend class Blob;
  friend class ForeignMemory;
  /// Called when the last reference to the block goes.
  virtual void give_back(Blob::Block* block);
  Blob::Block* new_block(std::size_t capacity);

  const Device device_;
  const std::size_t keep_bytes_;
  const bool fenced_;
  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<Blob::Block*>> free_;
  PoolCounts counts_;
};

PoolCounts host_pool_counts();

}  // namespace leeway
