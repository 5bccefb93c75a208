#pragma once
// Writing and reading of plain values as bytes, for greetings and frames. Reading trusts nothing.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/limits.hpp"

namespace leeway::transport {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

using Bytes = std::vector<std::byte>;

class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  template <class T>
  requires(std::is_trivially_copyable_v<T>&& std::has_unique_object_representations_v<T>) void put(
      const T& value) {
    put(&value, sizeof value);
  }
  /// Texts are cut at limits::kMaxGreetingText.
  void put(const std::string& text) {
    const auto count = static_cast<std::uint32_t>(std::min(text.size(), limits::kMaxGreetingText));
    put(count);
    put(text.data(), count);
  }
  void put(const void* bytes, std::size_t count) {
    const auto* const first = static_cast<const std::byte*>(bytes);
    out_.insert(out_.end(), first, first + count);
  }

 private:
  Bytes& out_;
};

/// Each take() is false if the bytes end before, or a text has control characters.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  std::size_t remaining() const { return left_.size(); }
  template <class T>
  requires(std::is_trivially_copyable_v<T>&& std::has_unique_object_representations_v<T>) bool take(
      T& value) {
    return take(&value, sizeof value);
  }
  bool take(std::string& text) {
    std::uint32_t count = 0;
    if (!take(count) || count > limits::kMaxGreetingText || count > left_.size()) return false;
    text.assign(reinterpret_cast<const char*>(left_.data()), count);
    left_ = left_.subspan(count);
    // Texts go into logs: control characters could forge lines of a terminal.
    return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  }
  bool take(void* to, std::size_t count) {
    if (count > left_.size()) return false;
    if (count > 0) std::memcpy(to, left_.data(), count);
    left_ = left_.subspan(count);
    return true;
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace leeway::transport
