#pragma once
// ByteReader: the content of a file held in memory, unpacked on the way if it is gzipped.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/expected.hpp"

namespace leeway {

/// Reads from front to end. A file that begins with gzip's magic number is unpacked (RFC 1952, any
/// number of members).
class ByteReader {
 public:
  /// `file` is borrowed; `name` is for errors.
  ByteReader(std::span<const std::byte> file, std::string name);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  /// Fills `out` and returns its size, or less where the content ends. A gzip checksum is verified
  /// by the read that meets the end. Errors: gzip data that is corrupt or stops early, with its
  /// byte in the file.
  Expected<std::size_t> read(std::span<std::byte> out);

  /// No more content than this is still to come: decides whether an announced size can be true
  /// before memory is taken.
  std::uint64_t most_left() const;

  /// True when the content is unpacked, so that its positions are not those of the file.
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
