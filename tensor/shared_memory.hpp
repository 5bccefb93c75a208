#pragma once
// SharedMemory: memory that other processes of the same user can map read-only, given its
// SharedMemoryName.
//
// It is a memfd: it has no name in the file system, and Linux frees it when the last process that
// maps it ends, even by a crash. Seals fix its size, so that a reader never touches an address
// without memory. The first page belongs to this class and holds a random nonce that identifies the
// memory: process and file numbers differ between hosts and containers, and are reused.
//
// Forked children do not inherit the mappings, because the owner could not track their reads.
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/expected.hpp"

namespace leeway {

/// Everything that another process needs to open the memory.
struct SharedMemoryName {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::uint64_t bytes = 0;
  std::array<std::uint64_t, 2> nonce{};

  friend bool operator==(const SharedMemoryName&, const SharedMemoryName&) = default;
};

class SharedMemory {
 public:
  /// Offset of the first byte that the owner may use.
  static constexpr std::size_t kFirst = 4096;

  /// `bytes` of zeros, a multiple of kFirst. Pages take memory when first written. `label` appears
  /// in /proc.
  static Expected<SharedMemory> create(const char* label, std::size_t bytes);

  /// Maps the memory of any process of this user read-only. `name` is not trusted.
  static Expected<SharedMemory> open(const SharedMemoryName& name);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory other) noexcept;
  ~SharedMemory();

  const SharedMemoryName& name() const { return name_; }
  std::size_t size() const { return static_cast<std::size_t>(name_.bytes); }
  const std::byte* data() const { return bytes_; }
  /// mutable_data(), fill() and empty() require that this process created the memory.
  std::byte* mutable_data();
  bool holds(const std::byte* at) const { return at >= bytes_ && at < bytes_ + size(); }

  /// Backs a range of pages with memory now. Returns false if the system is out of memory; a later
  /// write would kill the process.
  bool fill(std::size_t offset, std::size_t bytes);
  /// Returns the memory of a range of pages to the system; the range then reads as zeros.
  void empty(std::size_t offset, std::size_t bytes);

 private:
  SharedMemory() = default;
  SharedMemoryName name_;
  int fd_ = -1;  // only in the process that created the memory
  std::byte* bytes_ = nullptr;
};

}  // namespace leeway
