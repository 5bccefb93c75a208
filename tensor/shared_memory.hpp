#pragma once
// SharedMemory: a piece of memory that other processes of the same user can map, for reading alone,
// by what its owner tells them of it.
//
// It is a memfd: no folder lists it, and the system takes it back when the last process that maps
// it has ended, however it ended. Seals keep its size for ever, so that a reader is never left with
// an address that has nothing behind it. Its first page is kept by this class and holds a random
// number, by which whoever opens it knows this very memory: process and file numbers mean something
// else on another host, in another container, and after a while.
//
// Children made by fork do not inherit the mappings: nobody would know what they still read.
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/expected.hpp"

namespace leeway {

/// What others have to know in order to open it.
struct SharedMemoryName {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::uint64_t bytes = 0;
  std::array<std::uint64_t, 2> nonce{};

  friend bool operator==(const SharedMemoryName&, const SharedMemoryName&) = default;
};

class SharedMemory {
 public:
  /// Where the bytes of the owner begin.
  static constexpr std::size_t kFirst = 4096;

  /// `bytes` of zeros, a multiple of kFirst; memory is taken from the system where it is written.
  /// `label` appears in /proc.
  static Expected<SharedMemory> create(const char* label, std::size_t bytes);

  /// Maps the memory of another process, or of this one, for reading. `name` may be anything; the
  /// error says what speaks against it.
  static Expected<SharedMemory> open(const SharedMemoryName& name);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory other) noexcept;
  ~SharedMemory();

  const SharedMemoryName& name() const { return name_; }
  std::size_t size() const { return static_cast<std::size_t>(name_.bytes); }
  const std::byte* data() const { return bytes_; }
  /// Requires that this process created it.
  std::byte* mutable_data();
  bool holds(const std::byte* at) const { return at >= bytes_ && at < bytes_ + size(); }

  /// Takes memory for a range of pages now; false when the system has none, where writing would end
  /// the process. Requires that this process created it.
  bool fill(std::size_t offset, std::size_t bytes);
  /// Gives the memory of a range of pages back; it holds zeros again. Requires that this process
  /// created it.
  void empty(std::size_t offset, std::size_t bytes);

 private:
  SharedMemory() = default;
  SharedMemoryName name_;
  int fd_ = -1;  // of who created it
  std::byte* bytes_ = nullptr;
};

}  // namespace leeway
