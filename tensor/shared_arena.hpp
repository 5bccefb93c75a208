#pragma once
// SharedArena: holds the large blobs of this process, so that other processes of the host can read
// them in place.
//
// The arena is one SharedMemory that reserves far more addresses than the machine has memory. A
// block takes pages when it is allocated and returns them when it is freed, so free space costs
// nothing. A process that runs alone has no arena.
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "tensor/blob.hpp"
#include "tensor/shared_memory.hpp"

namespace leeway {

class SharedArena {
 public:
  explicit SharedArena(SharedMemory memory);

  /// A page-aligned block, all of it backed by memory; null if the arena is full or the system is
  /// out of memory.
  std::byte* allocate(std::size_t bytes);
  /// Requires a block from allocate().
  void free(const std::byte* block);

  bool holds(const std::byte* at) const { return memory_.holds(at); }
  std::size_t offset(const std::byte* at) const {
    return static_cast<std::size_t>(at - memory_.data());
  }
  const SharedMemoryName& name() const { return memory_.name(); }
  std::size_t bytes_in_use() const;

 private:
  void insert(std::size_t offset, std::size_t bytes);
  void erase(std::map<std::size_t, std::size_t>::iterator extent);
  void release(std::size_t offset, std::size_t bytes);

  SharedMemory memory_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;                // offset to bytes; neighbours are merged
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // the same extents as (bytes, offset)
  std::unordered_map<std::size_t, std::size_t> used_;      // offset to bytes
  std::size_t bytes_in_use_ = 0;
};

/// Makes all later blobs of at least limits::kSharedBlobBytes lie in the arena of this process
/// while it has room. Repeated calls do nothing.
Status use_shared_arena();

/// Null before use_shared_arena() has succeeded. Lives as long as the process.
const SharedArena* shared_arena();

/// Offset of the blob in the arena; nullopt if it lies elsewhere.
std::optional<std::size_t> arena_offset(const Blob& blob);

}  // namespace leeway
