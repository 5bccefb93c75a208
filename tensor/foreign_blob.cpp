#include "tensor/foreign_blob.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "core/check.hpp"
#include "tensor/blob_pool.hpp"

namespace leeway {

/// A pool without memory of its own: its blobs borrow memory and report when they release it.
class ForeignMemory final : public BlobPool {
 public:
  ForeignMemory() : BlobPool({}, 0, false) {}
  void read(std::byte* to, const Blob& blob) override { std::memcpy(to, blob.data(), blob.size()); }

  Blob blob(std::span<const std::byte> bytes, std::function<void()> done) {
    LW_CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0);
    auto block = std::make_unique<Foreign>();
    block->foreign = true;
    block->size = block->capacity = bytes.size();
    block->bytes = const_cast<std::byte*>(bytes.data());  // mutable_data() refuses
    block->pool = this;
    block->done = std::move(done);
    return Blob(block.release());
  }

 private:
  struct Foreign : Blob::Block {
    std::function<void()> done;
  };

  std::byte* system_allocate(std::size_t) override { throw std::bad_alloc(); }
  void system_free(std::byte*) override {}
  void give_back(Blob::Block* block) override {
    const std::unique_ptr<Foreign> foreign(static_cast<Foreign*>(block));
    if (foreign->done) foreign->done();
  }
};

Blob foreign_blob(std::span<const std::byte> bytes, std::function<void()> done) {
  static ForeignMemory& memory = *new ForeignMemory;
  return memory.blob(bytes, std::move(done));
}

}  // namespace leeway
