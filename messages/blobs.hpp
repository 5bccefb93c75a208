#pragma once
// The blobs of a message: their size, and the same header with other blobs, for messages inside
// messages.
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "messages/message.hpp"

namespace leeway {

/// Bytes of all blobs.
inline std::size_t blob_bytes(const Message& message) {
  std::size_t bytes = 0;
  for (const Blob& blob : message.blobs()) bytes += blob.size();
  return bytes;
}

inline Message with_blobs(const Message& message, std::vector<Blob> blobs) {
  return Message(message.header().size(), blobs, [&](std::span<std::uint64_t> words) {
    std::ranges::copy(message.header(), words.begin());
  });
}

inline Message without_blobs(const Message& message) {
  return with_blobs(message, {});
}

}  // namespace leeway
