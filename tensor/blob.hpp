#pragma once
// Blob: a shared, 64-byte aligned range of bytes that holds tensor data, from a pool that reuses
// memory.
//
// A blob has one writer until it is shared; from then on it is immutable, until `unique()` says
// that its holder is alone again. Copies of a Blob refer to the same bytes; the last one gives them
// back to the pool. A blob of foreign memory (tensor/foreign_blob.hpp) is immutable for ever.
//
// On a GPU, work that was asked for may not have been done when a reference is dropped: there a
// blob also carries fences, and a queue that uses the bytes waits for those of the queues before
// it.
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

  /// `bytes` of host memory from the process's pool; contents are arbitrary. Zero bytes give an
  /// empty, non-null blob.
  static Blob allocate(std::size_t bytes);
  /// `count` floats.
  static Blob floats(std::int64_t count) {
    return allocate(static_cast<std::size_t>(count) * sizeof(float));
  }

  explicit operator bool() const { return block_ != nullptr; }
  std::size_t size() const { return block_ ? block_->size : 0; }
  Device device() const { return block_ ? block_->device : Device{}; }
  void reset();

  /// True iff this is the only reference. Everything that former holders did to the bytes has
  /// happened before; on a GPU, everything that they asked for has a fence.
  bool unique() const {
    return block_ && block_->references.load(std::memory_order_acquire) == 1 && !block_->foreign;
  }
  bool same_as(const Blob& other) const { return block_ == other.block_; }

  const std::byte* data() const { return block_ ? block_->bytes : nullptr; }
  const float* as_floats() const { return reinterpret_cast<const float*>(data()); }
  std::span<const std::byte> bytes() const { return {data(), size()}; }

  /// For the writer alone: requires that nobody else reads or writes these bytes meanwhile, and
  /// that they are not foreign.
  std::byte* mutable_data() {
    if (!block_) return nullptr;
    if (block_->foreign) [[unlikely]]
      refuse_to_write();
    return block_->bytes;
  }
  float* mutable_floats() { return reinterpret_cast<float*>(mutable_data()); }

  /// The bytes where the processor can read them: this blob, or a copy of it when it lies on a GPU;
  /// waits for whoever writes it there.
  Blob on_host() const;
  /// Of a blob on a GPU; null for host memory, which needs none.
  Fences* fences() const { return block_ ? block_->fences.get() : nullptr; }

 private:
  friend class BlobPool;
  friend class ForeignMemory;
  struct Block {
    std::atomic<std::uint32_t> references{1};
    bool foreign = false;
    Device device;
    std::size_t size = 0;      // bytes asked for
    std::size_t capacity = 0;  // bytes held
    std::byte* bytes = nullptr;
    BlobPool* pool = nullptr;
    std::unique_ptr<Fences> fences;
  };
  explicit Blob(Block* block) : block_(block) {}
  [[noreturn]] void refuse_to_write() const;
  Block* block_ = nullptr;
};

}  // namespace leeway
