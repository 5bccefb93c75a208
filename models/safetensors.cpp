#include "models/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <unordered_set>

#include "core/check.hpp"
#include "core/files.hpp"
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

/// The header, with the positions of the tensors counted from the begin of the file.
Expected<SafetensorsHeader> read_header(std::uint64_t size, const ReadAt& read_at,
                                        const std::string& file) {
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
  for (auto& entry : header->entries) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return header;
}

/// A tensor of F64, rounded to F32.
Expected<NamedTensor> read_f64(const SafetensorsHeader::Entry& entry, const ReadAt& read_at) {
  constexpr std::size_t kAtOnce = 4096;
  std::array<double, kAtOnce> values{};
  NamedTensor tensor{entry.name, entry.shape, DType::f32, Blob::floats(entry.shape.count())};
  float* out = tensor.data.mutable_floats();
  for (std::uint64_t at = entry.begin; at < entry.end;) {
    const auto count = std::min<std::size_t>(kAtOnce, (entry.end - at) / sizeof(double));
    const Status status = read_at(at, std::as_writable_bytes(std::span(values).first(count)));
    if (!status) return status.error();
    out = std::transform(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), out,
                         [](double value) { return static_cast<float>(value); });
    at += count * sizeof(double);
  }
  return tensor;
}

Expected<Safetensors> decode(std::uint64_t size, const ReadAt& read_at, const std::string& file) {
  auto header = read_header(size, read_at, file);
  if (!header) return header.error();
  Safetensors result;
  result.metadata = std::move(header->metadata);
  for (auto& entry : header->entries) {
    if (entry.other_type == "F64") {
      auto rounded = read_f64(entry, read_at);
      if (!rounded) return rounded.error();
      result.from_f64.push_back(entry.name);
      result.tensors.push_back(std::move(*rounded));
      continue;
    }
    if (!entry.other_type.empty()) {
      result.left_out.emplace_back(std::move(entry.name), entry.other_type);
      continue;
    }
    const auto bytes = static_cast<std::size_t>(entry.end - entry.begin);
    NamedTensor tensor{std::move(entry.name), entry.shape, entry.dtype, Blob::allocate(bytes)};
    const Status status = read_at(entry.begin, {tensor.data.mutable_data(), bytes});
    if (!status) return status.error();
    result.tensors.push_back(std::move(tensor));
  }
  return result;
}

ReadAt reader_of(std::span<const std::byte> file) {
  return [file](std::uint64_t position, std::span<std::byte> out) -> Status {
    const auto from = file.subspan(static_cast<std::size_t>(position), out.size());
    std::copy(from.begin(), from.end(), out.begin());
    return {};
  };
}

void check_tensors(std::span<const TensorView> tensors) {
  std::unordered_set<std::string_view> names;
  for (const auto& tensor : tensors) {
    const auto bytes = static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype);
    LW_CHECK(tensor.bytes.size() == bytes, tensor.name, tensor.shape, tensor.bytes.size());
    LW_CHECK(names.insert(tensor.name).second, tensor.name);
  }
}

}  // namespace

Expected<SafetensorsBytes> lay_out_safetensors(std::vector<TensorView> tensors,
                                               const Metadata& metadata) {
  check_tensors(tensors);
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return size_of(a.dtype) > size_of(b.dtype);
  });
  const auto header = make_safetensors_header(tensors, metadata);
  if (!header) return header.error();
  SafetensorsBytes file;
  const std::uint64_t length = header->size();
  file.head.resize(kLengthBytes + header->size());
  std::memcpy(file.head.data(), &length, kLengthBytes);
  std::memcpy(file.head.data() + kLengthBytes, header->data(), header->size());
  file.pieces.emplace_back(file.head);
  for (const TensorView& tensor : tensors) file.pieces.push_back(tensor.bytes);
  return file;
}

Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         const Metadata& metadata) {
  std::vector<TensorView> views;
  for (const auto& tensor : tensors) {
    LW_CHECK(tensor.data.device().kind != Device::Kind::cuda, tensor.name);
    views.push_back({tensor.name, tensor.shape, tensor.dtype, tensor.data.bytes()});
  }
  const auto file = lay_out_safetensors(std::move(views), metadata);
  if (!file) return Error{concat("\"", path, "\" cannot be written: ", file.error().text)};
  const Status written = write_durably(disk(), path, file->pieces);
  if (written) return {};
  return Error{
      concat(written.error().text, "; give a path in a writable folder with enough space")};
}

Expected<Safetensors> parse_safetensors(std::span<const std::byte> file, const std::string& name) {
  return decode(file.size(), reader_of(file), name);
}

Expected<std::vector<TensorView>> view_safetensors(std::span<const std::byte> file,
                                                   const std::string& name) {
  auto header = read_header(file.size(), reader_of(file), name);
  if (!header) return header.error();
  std::vector<TensorView> tensors;
  for (auto& entry : header->entries) {
    if (!entry.other_type.empty())
      return Error{concat(name, ": tensor ", excerpt(entry.name), " is of type ", entry.other_type,
                          ", where F32 is needed; save the file again")};
    tensors.push_back({std::move(entry.name), entry.shape, entry.dtype,
                       file.subspan(static_cast<std::size_t>(entry.begin),
                                    static_cast<std::size_t>(entry.end - entry.begin))});
  }
  return tensors;
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
