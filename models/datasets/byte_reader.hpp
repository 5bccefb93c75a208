#pragma once
// ByteReader: the content of a file in memory, decompressed if it is gzipped.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/expected.hpp"

namespace leeway {

/// Reads sequentially. A file that begins with gzip's magic number is decompressed (RFC 1952, any
/// number of members).
class ByteReader {
 public:
  /// `file` is borrowed; `name` is for errors.
  ByteReader(std::span<const std::byte> file, std::string name);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  /// Fills `out` and returns its size, or less if the content ends. The read that reaches the end
  /// verifies the gzip checksum. Errors: corrupt or truncated gzip data, with its byte in the file.
  Expected<std::size_t> read(std::span<std::byte> out);

  /// An upper bound of the bytes that are left, to validate a size in a header before memory is
  /// allocated.
  std::uint64_t max_remaining() const;

  /// True if the content is decompressed; its positions then differ from those of the file.
  bool gzipped() const { return inflate_ != nullptr; }

 private:
  struct Inflate;
  Expected<std::size_t> unpack(std::span<std::byte> out);
  Status next_member();

  std::span<const std::byte> file_;
  std::string name_;
  std::size_t position_ = 0;  // of the next byte of file_
  bool ended_ = false;
  std::unique_ptr<Inflate> inflate_;
};

}  // namespace leeway
