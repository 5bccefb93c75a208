// Any bytes are a message or an error. First byte: how many blobs, then a byte for the size of each
// in units of 4 bytes; the rest is the header.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/check.hpp"
#include "messages/envelope.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t blob_count = data[0] % 8;
  if (size < 1 + blob_count) return 0;
  std::vector<leeway::Blob> blobs;
  for (std::size_t i = 0; i < blob_count; ++i)
    blobs.push_back(leeway::Blob::allocate(data[1 + i] * std::size_t{4}));
  const std::uint8_t* bytes = data + 1 + blob_count;
  std::vector<std::uint64_t> header((size - 1 - blob_count) / sizeof(std::uint64_t));
  if (!header.empty()) std::memcpy(header.data(), bytes, header.size() * sizeof(std::uint64_t));

  const auto envelope = leeway::decode(leeway::Message(std::move(header), std::move(blobs)));
  if (!envelope) {
    LW_CHECK(!envelope.error().text.empty());
    return 0;
  }
  const auto again = leeway::decode(leeway::encode(*envelope));
  LW_CHECK(again.has_value());
  LW_CHECK(again->body.index() == envelope->body.index());
  return 0;
}
