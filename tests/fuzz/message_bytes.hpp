#pragma once
// Builds a message from a fuzzer's bytes. The first byte is the number of blobs, then comes a byte
// for the size of each in units of 4 bytes; the rest is the header.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "messages/message.hpp"

namespace leeway::fuzz {

/// nullopt if there are too few bytes for the sizes.
inline std::optional<Message> message_of(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return std::nullopt;
  const std::size_t blob_count = data[0] % 8;
  if (size < 1 + blob_count) return std::nullopt;
  std::vector<Blob> blobs;
  for (std::size_t i = 0; i < blob_count; ++i)
    blobs.push_back(Blob::allocate(data[1 + i] * std::size_t{4}));
  const std::uint8_t* bytes = data + 1 + blob_count;
  std::vector<std::uint64_t> header((size - 1 - blob_count) / sizeof(std::uint64_t));
  if (!header.empty()) std::memcpy(header.data(), bytes, header.size() * sizeof(std::uint64_t));
  return Message(header, std::move(blobs));
}

}  // namespace leeway::fuzz
