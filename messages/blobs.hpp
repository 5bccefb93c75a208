#pragma once
// with_blobs and without_blobs: the same header with other blobs, for messages inside messages.
#include <algorithm>
#include <span>
#include <vector>

#include "messages/message.hpp"

namespace leeway {

inline Message with_blobs(const Message& message, std::vector<Blob> blobs) {
  return Message(message.header().size(), blobs, [&](std::span<std::uint64_t> words) {
    std::ranges::copy(message.header(), words.begin());
  });
}

inline Message without_blobs(const Message& message) {
  return with_blobs(message, {});
}

}  // namespace leeway
