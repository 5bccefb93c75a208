#pragma once
// Blob: a reference-counted, 64-byte aligned range of bytes that holds tensor data.
//
// A copy of a Blob refers to the same bytes; the last copy returns them to their pool. Only a
// holder for which `unique()` is true may write: a shared blob is immutable. A blob of foreign
// memory (tensor/foreign_blob.hpp) is always immutable.
//
// On a GPU a reference may be dropped while queued work still uses the bytes. Blobs there carry
// fences, and each queue waits for the fences of the other queues.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "tensor/device.hpp"
#include "tensor/fences.hpp"

namespace leeway {

class BlobPool;
class ForeignMemory;

class Blob {
 public:
  Blob() = default;
  Blob(const Blob& other) : block_(other.block_) {
    if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Blob(Blob&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Blob& operator=(Blob other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Blob() { reset(); }

  /// Uninitialised host memory from the process's pool. Zero bytes give an empty, non-null blob.
  static Blob allocate(std::size_t bytes);
  static Blob floats(std::int64_t count) {
    return allocate(static_cast<std::size_t>(count) * sizeof(float));
  }
  static Blob copy_of(std::span<const std::byte> bytes);

  explicit operator bool() const { return block_ != nullptr; }
  std::size_t size() const { return block_ ? block_->size : 0; }
  Device device() const { return block_ ? block_->device : Device{}; }
  void reset();

  /// True iff this is the only reference and the memory is not foreign. Accesses by former holders
  /// happen before the call; on a GPU their queued work has fences.
  bool unique() const {
    return block_ && block_->references.load(std::memory_order_acquire) == 1 && !block_->foreign;
  }
  bool same_as(const Blob& other) const { return block_ == other.block_; }
  /// The same bytes in memory, as for pointers.
  bool operator==(const Blob& other) const { return same_as(other); }

  const std::byte* data() const { return block_ ? block_->bytes : nullptr; }
  const float* as_floats() const { return reinterpret_cast<const float*>(data()); }
  std::span<const std::byte> bytes() const { return {data(), size()}; }

  /// Requires that no other thread reads or writes the bytes meanwhile, and that they are not
  /// foreign.
  std::byte* mutable_data() {
    if (!block_) return nullptr;
    if (block_->foreign) [[unlikely]]
      refuse_to_write();
    return block_->bytes;
  }
  float* mutable_floats() { return reinterpret_cast<float*>(mutable_data()); }

  /// This blob, or for a blob on a GPU a copy in host memory, made after all queued writes.
  Blob on_host() const;
  /// Null for host memory.
  Fences* fences() const { return block_ ? block_->fences.get() : nullptr; }

 private:
  friend class BlobPool;
  friend class ForeignMemory;
  struct Block {
    std::atomic<std::uint32_t> references{1};
    bool foreign = false;
    Device device;
    std::size_t size = 0;      // bytes requested
    std::size_t capacity = 0;  // bytes allocated
    std::byte* bytes = nullptr;
    BlobPool* pool = nullptr;
    std::unique_ptr<Fences> fences;
  };
  explicit Blob(Block* block) : block_(block) {}
  [[noreturn]] void refuse_to_write() const;
  Block* block_ = nullptr;
};

}  // namespace leeway
