#pragma once
// Message: a small immutable Cap'n Proto header and the blobs of tensor data that it describes.
//
// Inside a process a message travels as pointers; copying one copies references. The header is
// opaque here: `encode` and `decode_*` of each conversation build and validate it.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "tensor/blob.hpp"

namespace leeway {

/// Version of all messages. A program refuses messages of other versions.
inline constexpr std::uint16_t kProtocolVersion = 1;

class Message {
 public:
  Message() = default;
  /// With a header of 8-byte words, which decoding validates.
  Message(const std::vector<std::uint64_t>& header, std::vector<Blob> blobs)
      : Message(header.size(), blobs, [&](std::span<std::uint64_t> words) {
          std::copy(header.begin(), header.end(), words.begin());
        }) {}
  /// With a header of `words` words, which `write` must fill completely. Moves from `blobs`.
  template <class Write>
  Message(std::size_t words, std::span<Blob> blobs, Write write)
      : content_(Content::make(words, blobs)) {
    write(std::span(content_->header(), words));
  }
  Message(const Message& other) : content_(other.content_) {
    if (content_) content_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Message(Message&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
  Message& operator=(Message other) noexcept {
    std::swap(content_, other.content_);
    return *this;
  }
  ~Message() {
    if (content_ && content_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      Content::end(content_);
  }

  /// The same header, and references to the same blobs.
  bool operator==(const Message& other) const {
    return std::ranges::equal(header(), other.header()) &&
           std::ranges::equal(blobs(), other.blobs());
  }

  std::span<const std::uint64_t> header() const {
    return content_ ? std::span<const std::uint64_t>(content_->header(), content_->word_count)
                    : std::span<const std::uint64_t>();
  }
  std::span<const Blob> blobs() const {
    return content_ ? std::span<const Blob>(content_->blobs(), content_->blob_count)
                    : std::span<const Blob>();
  }

 private:
  /// One allocation: the blobs and then the header follow this struct.
  struct Content {
    std::atomic<std::uint32_t> references{1};
    std::uint32_t blob_count;
    std::size_t word_count;

    Blob* blobs() { return reinterpret_cast<Blob*>(this + 1); }
    std::uint64_t* header() { return reinterpret_cast<std::uint64_t*>(blobs() + blob_count); }

    static Content* make(std::size_t words, std::span<Blob> blobs) {
      void* const memory = ::operator new(sizeof(Content) + blobs.size() * sizeof(Blob) +
                                          words * sizeof(std::uint64_t));
      auto* const content = new (memory)
          Content{.blob_count = static_cast<std::uint32_t>(blobs.size()), .word_count = words};
      std::uninitialized_move(blobs.begin(), blobs.end(), content->blobs());
      return content;
    }
    static void end(Content* content) {
      std::destroy_n(content->blobs(), content->blob_count);
      content->~Content();
      ::operator delete(content);
    }
  };
  static_assert(alignof(Blob) == alignof(std::uint64_t) && sizeof(Content) % alignof(Blob) == 0);

  Content* content_ = nullptr;
};

}  // namespace leeway
