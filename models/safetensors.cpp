#include "models/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <unordered_set>

#include "core/check.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/safetensors_header.hpp"

namespace leeway {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t kLengthBytes = 8;
/// The format's limit.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

/// Fills `out` with the bytes of the file from `position`. Requires a range inside of the file.
using ReadAt = std::function<Status(std::uint64_t position, std::span<std::byte> out)>;

Expected<Safetensors> decode(std::uint64_t size, const ReadAt& read_at, const std::string& file) {
  if (size < kLengthBytes)
    return Error{concat(file, ": found ", size, " bytes; give a safetensors file")};
  std::array<std::byte, kLengthBytes> word{};
  if (Status status = read_at(0, word); !status) return status.error();
  const auto length = std::bit_cast<std::uint64_t>(word);
  if (length > kMaxHeaderBytes || length > size - kLengthBytes)
    return Error{concat(file, ": byte 0: found a header of ", length, " bytes in a file of ", size,
                        "; give a complete safetensors file")};

  std::string text(static_cast<std::size_t>(length), '\0');
  if (Status status = read_at(kLengthBytes, std::as_writable_bytes(std::span(text))); !status)
    return status.error();
  const std::uint64_t data_begin = kLengthBytes + length;
  auto header = parse_safetensors_header(text, size - data_begin, file);
  if (!header) return header.error();

  Safetensors result{{}, std::move(header->metadata)};
  for (auto& entry : header->entries) {
    const auto bytes = static_cast<std::size_t>(entry.end - entry.begin);
    NamedTensor tensor{std::move(entry.name), entry.shape, entry.dtype, Blob::allocate(bytes)};
    const Status status = read_at(data_begin + entry.begin, {tensor.data.mutable_data(), bytes});
    if (!status) return status.error();
    result.tensors.push_back(std::move(tensor));
  }
  return result;
}

Status write_all(int file, const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ::ssize_t written = ::write(file, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error{system_reason()};
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return {};
}

/// Creates the file, which must not exist, and flushes it to the disk.
Status write_new(const std::string& path, const std::string& header,
                 std::span<const NamedTensor* const> tensors) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return Error{system_reason()};
  const std::uint64_t length = header.size();
  Status status = write_all(file.get(), &length, sizeof length);
  if (status) status = write_all(file.get(), header.data(), header.size());
  for (const NamedTensor* tensor : tensors)
    if (status) status = write_all(file.get(), tensor->data.data(), tensor->data.size());
  if (status && ::fsync(file.get()) != 0) status = Error{system_reason()};
  return status;
}

/// Makes a rename durable. Best effort, because some file systems cannot flush a folder.
void flush_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) ::fsync(file.get());
}

std::string temporary_path(const std::string& path) {
  static std::atomic<std::uint64_t> counter{0};
  return concat(path, ".", ::getpid(), ".", counter.fetch_add(1), ".partial");
}

void check_tensors(std::span<const NamedTensor> tensors) {
  std::unordered_set<std::string_view> names;
  for (const auto& tensor : tensors) {
    const auto bytes = static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype);
    LW_CHECK(tensor.data.size() == bytes, tensor.name, tensor.shape, tensor.data.size());
    LW_CHECK(tensor.data.device().kind != Device::Kind::cuda, tensor.name);
    LW_CHECK(names.insert(tensor.name).second, tensor.name);
  }
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         const Metadata& metadata) {
  check_tensors(tensors);
  std::vector<const NamedTensor*> order;
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return size_of(a->dtype) > size_of(b->dtype);
  });
  const auto header = make_safetensors_header(order, metadata);
  if (!header) return Error{concat("\"", path, "\" cannot be written: ", header.error().text)};

  const std::string temporary = temporary_path(path);
  Status status = write_new(temporary, *header, order);
  if (status && std::rename(temporary.c_str(), path.c_str()) != 0) status = Error{system_reason()};
  if (!status) {
    ::unlink(temporary.c_str());
    return Error{concat("\"", path, "\" cannot be written: ", status.error().text,
                        "; give a path in a writable folder with enough space")};
  }
  flush_folder_of(path);
  return {};
}

Expected<Safetensors> parse_safetensors(std::span<const std::byte> file, const std::string& name) {
  const auto read_at = [&](std::uint64_t position, std::span<std::byte> out) -> Status {
    const auto from = file.subspan(static_cast<std::size_t>(position), out.size());
    std::copy(from.begin(), from.end(), out.begin());
    return {};
  };
  return decode(file.size(), read_at, name);
}

Expected<Safetensors> read_safetensors(const std::string& path) {
  const auto unreadable = [&] {
    return Error{concat("\"", path, "\" cannot be read: ", system_reason(),
                        "; give an existing safetensors file")};
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return unreadable();

  const auto read_at = [&](std::uint64_t position, std::span<std::byte> out) -> Status {
    while (!out.empty()) {
      const ::ssize_t got =
          ::pread(file.get(), out.data(), out.size(), static_cast<off_t>(position));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return unreadable();
      if (got == 0) return Error{concat(path, ": became shorter while it was read; try again")};
      position += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
  };
  return decode(static_cast<std::uint64_t>(info.st_size), read_at, path);
}

}  // namespace leeway
