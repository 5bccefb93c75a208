#include "models/datasets/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "core/memory.hpp"
#include "core/text.hpp"
#include "models/datasets/byte_reader.hpp"

namespace leeway {

namespace {

Error unreadable(const std::string& path, std::string_view advice) {
  return Error{concat("\"", path, "\" cannot be read: ", system_reason(), "; ", advice)};
}

/// Small files are not checked: asking the system takes longer than reading them.
Status check_size(const std::string& path, std::uint64_t size) {
  constexpr std::uint64_t kSmallFile = 1 << 20;
  if (size < kSmallFile) return {};
  return check_memory(concat('"', path, '"'), concat("reading its ", size_text(size)), size,
                      kTooLargeAdvice);
}

}  // namespace

Expected<std::vector<std::byte>> read_file(const std::string& path, std::string_view advice) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return unreadable(path, advice);

  // One byte more than the file's size, so the read that finds the end needs no larger buffer.
  // Pipes have size 0 and grow.
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
  if (Status fits = check_size(path, size); !fits) return fits.error();
  constexpr std::size_t kMinBuffer = 4096;
  std::vector<std::byte> bytes(std::max(kMinBuffer, static_cast<std::size_t>(size) + 1));
  std::size_t used = 0;
  for (;;) {
    if (used == bytes.size()) bytes.resize(bytes.size() * 2);
    const ::ssize_t got = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(path, advice);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

Expected<std::vector<std::byte>> read_unpacked(const std::string& path, std::string_view advice) {
  auto file = read_file(path, advice);
  if (!file) return file;
  ByteReader reader(*file, path);
  if (!reader.gzipped()) return file;
  constexpr std::size_t kFirstBuffer = 1 << 20;
  std::vector<std::byte> content(kFirstBuffer);
  std::size_t used = 0;
  for (;;) {
    const auto got = reader.read(std::span(content).subspan(used));
    if (!got) return got.error();
    used += *got;
    if (used < content.size()) break;
    // The new buffer and the old one are in memory together.
    const std::size_t larger = 2 * content.size();
    if (Status fits = check_memory(concat('"', path, '"'), "its decompressed content", larger,
                                   kTooLargeAdvice);
        !fits)
      return fits.error();
    content.resize(larger);
  }
  content.resize(used);
  return content;
}

bool file_exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

std::string excerpt(std::string_view content) {
  constexpr std::size_t kMaxExcerpt = 40;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : content.substr(0, kMaxExcerpt)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out + (content.size() > kMaxExcerpt ? "\"..." : "\"");
}

}  // namespace leeway
