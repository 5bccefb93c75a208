#pragma once
// BlobPool: memory of one kind that is kept and reused, since fresh memory is slow.
//
// Free blocks are kept by capacity. Capacities are powers of two and the three steps between them,
// so that at most a fifth of a block is unused and sizes that differ a little share blocks. A pool
// is never destroyed: blobs may outlive all else.
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensor/blob.hpp"

namespace leeway {

/// What a pool did so far.
struct PoolCounts {
  std::uint64_t system_allocations = 0;  // times it asked the system for memory
  std::uint64_t reuses = 0;              // times it did not have to
  std::size_t bytes_in_use = 0;
  std::size_t bytes_kept = 0;  // free, kept for reuse
};

class BlobPool {
 public:
  /// `fenced`: blobs carry fences. Keeps up to `keep_bytes` of free memory.
  BlobPool(Device device, std::size_t keep_bytes, bool fenced)
      : device_(device), keep_bytes_(keep_bytes), fenced_(fenced) {}
  virtual ~BlobPool() = default;
  BlobPool(const BlobPool&) = delete;
  BlobPool& operator=(const BlobPool&) = delete;

  /// A blob of `bytes` with arbitrary contents; its fences are those of its former life.
  Blob take(std::size_t bytes);
  PoolCounts counts() const;
  Device device() const { return device_; }

  /// Copies a blob of this pool to host memory, when whoever writes it has done so.
  virtual void read(std::byte* to, const Blob& blob) = 0;

 protected:
  /// At least 64-byte aligned; throws when there is none.
  virtual std::byte* system_allocate(std::size_t bytes) = 0;
  virtual void system_free(std::byte* bytes) = 0;
  /// Gives all free memory back to the system.
  void give_up_kept();

 private:
  friend class Blob;
  friend class ForeignMemory;
  /// The last reference to the block is gone.
  virtual void give_back(Blob::Block* block);
  Blob::Block* fresh(std::size_t capacity);

  const Device device_;
  const std::size_t keep_bytes_;
  const bool fenced_;
  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<Blob::Block*>> free_;
  PoolCounts counts_;
};

/// Counts of the process's host pool.
PoolCounts host_pool_counts();

}  // namespace leeway
