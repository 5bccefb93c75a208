#pragma once
// Message: a small immutable Cap'n Proto header and the blobs of tensor data that it describes.
//
// Inside a process a message travels as pointers; copying one copies references. The header is
// opaque here: `encode` and `decode_*` of each conversation build and validate it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensor/blob.hpp"

namespace leeway {

class Message {
 public:
  Message() = default;
  /// Takes a header of 8-byte words. What is in it is checked when it is decoded.
  Message(std::vector<std::uint64_t> header, std::vector<Blob> blobs)
      : content_(std::make_shared<const Content>(Content{std::move(header), std::move(blobs)})) {}

  std::span<const std::uint64_t> header() const {
    return content_ ? std::span(content_->header) : std::span<const std::uint64_t>();
  }
  std::span<const Blob> blobs() const {
    return content_ ? std::span(content_->blobs) : std::span<const Blob>();
  }

 private:
  struct Content {
    std::vector<std::uint64_t> header;
    std::vector<Blob> blobs;
  };
  std::shared_ptr<const Content> content_;
};

}  // namespace leeway
