#include "models/datasets/byte_reader.hpp"

#define ZLIB_CONST  // zlib reads its input through a pointer to const
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "core/check.hpp"
#include "core/text.hpp"

namespace leeway {

namespace {

/// zlib counts in 32 bits.
constexpr std::size_t kMaxInflateBytes = std::size_t{1} << 30;
/// Deflate needs at least two bits for 258 bytes.
constexpr std::uint64_t kMaxExpansion = 1032;
constexpr int kGzipWindow = MAX_WBITS + 16;

bool begins_with_gzip_magic(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

struct ByteReader::Inflate {
  z_stream stream{};
  Inflate() { LW_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK); }
  ~Inflate() { inflateEnd(&stream); }
};

ByteReader::ByteReader(std::span<const std::byte> file, std::string name)
    : file_(file), name_(std::move(name)) {
  if (begins_with_gzip_magic(file_)) inflate_ = std::make_unique<Inflate>();
}

ByteReader::~ByteReader() = default;

std::uint64_t ByteReader::max_remaining() const {
  const std::uint64_t left = file_.size() - position_;
  if (!gzipped()) return left;
  // zlib buffers less output than its window.
  return left * kMaxExpansion + (std::uint64_t{1} << MAX_WBITS);
}

Expected<std::size_t> ByteReader::read(std::span<std::byte> out) {
  if (gzipped()) return unpack(out);
  const std::size_t count = std::min(out.size(), file_.size() - position_);
  if (count > 0) std::memcpy(out.data(), file_.data() + position_, count);
  position_ += count;
  return count;
}

Expected<std::size_t> ByteReader::unpack(std::span<std::byte> out) {
  z_stream& stream = inflate_->stream;
  std::size_t done = 0;
  while (done < out.size() && !ended_) {
    const std::size_t room = std::min(out.size() - done, kMaxInflateBytes);
    const std::size_t input = std::min(file_.size() - position_, kMaxInflateBytes);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(room);
    stream.next_in = reinterpret_cast<const Bytef*>(file_.data() + position_);
    stream.avail_in = static_cast<uInt>(input);
    const int code = inflate(&stream, Z_NO_FLUSH);
    position_ += input - stream.avail_in;
    done += room - stream.avail_out;

    if (code == Z_STREAM_END) {
      if (Status next = next_member(); !next) return next.error();
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return Error{concat(name_, ": byte ", position_, ": corrupt gzip data (",
                          stream.msg ? stream.msg : "unknown reason", "); fetch the file again")};
    } else if (position_ == file_.size() && stream.avail_out > 0) {
      return Error{concat(name_, ": byte ", position_,
                          ": the gzip data is truncated; fetch the file again")};
    }
  }
  return done;
}

Status ByteReader::next_member() {
  const auto rest = file_.subspan(position_);
  if (rest.empty()) {
    ended_ = true;
  } else if (begins_with_gzip_magic(rest)) {
    LW_CHECK(inflateReset(&inflate_->stream) == Z_OK);
  } else {
    return Error{concat(name_, ": byte ", position_, ": found ", rest.size(),
                        " bytes after the end of the gzip data; fetch the file again")};
  }
  return {};
}

}  // namespace leeway
