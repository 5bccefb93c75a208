#pragma once
// SharedArena: the memory of this process that large blobs lie in, when other processes of the host
// shall read them in place.
//
// The arena is one SharedMemory of far more addresses than there is memory: pages are taken when a
// block is carved and given back when it is freed, so that what is free costs nothing. A process
// that talks to no other has none.
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

  /// A block with memory behind all of it, aligned to a page; null when there is no room or no
  /// memory.
  std::byte* allocate(std::size_t bytes);
  /// Requires a block of `allocate`.
  void free(const std::byte* block);

  bool holds(const std::byte* at) const { return memory_.holds(at); }
  std::size_t offset(const std::byte* at) const {
    return static_cast<std::size_t>(at - memory_.data());
  }
  const SharedMemoryName& name() const { return memory_.name(); }
  /// Of all blocks.
  std::size_t bytes_in_use() const;

 private:
  void insert(std::size_t offset, std::size_t bytes);
  void erase(std::map<std::size_t, std::size_t>::iterator extent);
  void release(std::size_t offset, std::size_t bytes);

  SharedMemory memory_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;                // offset to bytes; no two touch
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // the same: bytes, offset
  std::unordered_map<std::size_t, std::size_t> used_;      // offset to bytes
  std::size_t bytes_in_use_ = 0;
};

/// From now on blobs of at least limits::kSharedBlobBytes lie in the arena of this process, as long
/// as that has room. Once is enough; the error says why the system refuses.
Status use_shared_arena();

/// Null unless use_shared_arena() has succeeded. It lives as long as the process.
const SharedArena* shared_arena();

/// Where in the arena the blob lies; nothing for one that lies elsewhere.
std::optional<std::size_t> arena_offset(const Blob& blob);

}  // namespace leeway
