#include "tensor/shared_arena.hpp"

#include <fcntl.h>
#include <rapidcheck/catch.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/limits.hpp"
#include "core/rng.hpp"
#include "tensor/blob_pool.hpp"

using namespace leeway;

namespace {

constexpr std::size_t kMiB = 1 << 20;

SharedMemory new_memory(std::size_t bytes) {
  auto made = SharedMemory::create("leeway-test", bytes);
  REQUIRE(made);
  return std::move(*made);
}

/// The memory that the system has allocated for the file.
std::size_t allocated_bytes(const SharedMemoryName& name) {
  struct stat status {};
  REQUIRE(::fstat(name.fd, &status) == 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

/// The permissions of the mapping at an address as in /proc: "rw-s".
std::string permissions(const std::byte* at) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0, end = 0;
    const std::uintptr_t first = std::stoull(line, &dash, 16);
    const std::uintptr_t last = std::stoull(line.substr(dash + 1), &end, 16);
    if (address >= first && address < last) return line.substr(dash + 1 + end + 1, 4);
  }
  return "";
}

bool is_refused(const SharedMemoryName& name) {
  const auto opened = SharedMemory::open(name);
  if (!opened) INFO(opened.error().text);
  return !opened && opened.error().text.starts_with("shared memory: ");
}

}  // namespace

TEST_CASE("with an arena in use, large blobs are in the arena and small ones are not") {
  constexpr std::size_t kLarge = 3 * limits::kSharedBlobBytes;
  const Blob before = Blob::allocate(kLarge);
  Blob::allocate(kLarge).reset();  // the pool keeps a block outside the arena
  CHECK(shared_arena() == nullptr);
  CHECK_FALSE(arena_offset(before));

  REQUIRE(use_shared_arena());
  const SharedArena* const arena = shared_arena();
  REQUIRE(arena != nullptr);
  REQUIRE(use_shared_arena());  // a second call does nothing
  CHECK(shared_arena() == arena);
  CHECK_FALSE(arena_offset(before));
  CHECK_FALSE(arena_offset(Blob()));
  CHECK_FALSE(arena_offset(Blob::allocate(limits::kSharedBlobBytes / 2)));

  Blob large = Blob::allocate(kLarge);
  const auto offset = arena_offset(large);
  REQUIRE(offset);
  CHECK(*offset >= SharedMemory::kFirst);
  CHECK(*offset % 64 == 0);
  CHECK(*offset + kLarge <= arena->name().bytes);
  CHECK(arena_offset(Blob::allocate(limits::kSharedBlobBytes)));

  // The arena's name opens the same memory.
  std::memset(large.mutable_data(), 0x5a, kLarge);
  const auto opened = SharedMemory::open(arena->name());
  REQUIRE(opened);
  CHECK(opened->data() + *offset != large.data());
  CHECK(std::memcmp(opened->data() + *offset, large.data(), kLarge) == 0);
}

TEST_CASE("blocks of an arena never overlap, and freed neighbours merge") {
  static constexpr std::size_t kBytes = 16 * kMiB;
  rc::prop("blocks", [](std::uint64_t seed) {
    SharedArena arena(new_memory(kBytes));
    Rng rng(seed);
    std::map<std::size_t, std::pair<std::byte*, std::size_t>> held;  // by offset
    for (int i = 0; i < 200; ++i) {
      if (!held.empty() && rng.one_in(2)) {
        const auto victim = std::next(held.begin(), static_cast<long>(rng.below(held.size())));
        arena.free(victim->second.first);
        held.erase(victim);
        continue;
      }
      const std::size_t bytes = 1 + rng.below(kMiB);
      std::byte* const block = arena.allocate(bytes);
      if (!block) continue;
      RC_ASSERT(reinterpret_cast<std::uintptr_t>(block) % 4096 == 0u);
      const std::size_t offset = arena.offset(block);
      RC_ASSERT(offset >= SharedMemory::kFirst);
      RC_ASSERT(offset + bytes <= kBytes);
      const auto after = held.lower_bound(offset);
      RC_ASSERT(after == held.end() || offset + bytes <= after->first);
      if (after != held.begin()) {
        const auto before = std::prev(after);
        RC_ASSERT(before->first + before->second.second <= offset);
      }
      block[0] = block[bytes - 1] = std::byte{1};
      held[offset] = {block, bytes};
    }
    for (const auto& [offset, block] : held) arena.free(block.first);
    RC_ASSERT(arena.bytes_in_use() == 0u);
    RC_ASSERT(arena.allocate(kBytes - kMiB) != nullptr);
  });
}

TEST_CASE("an arena takes memory for a block and returns it when the block is freed") {
  SharedArena arena(new_memory(std::size_t{64} << 30));
  const std::size_t idle = allocated_bytes(arena.name());
  CHECK(idle < kMiB);
  std::byte* const block = arena.allocate(32 * kMiB);
  REQUIRE(block);
  CHECK(allocated_bytes(arena.name()) >= 32 * kMiB);  // before the first write
  arena.free(block);
  CHECK(allocated_bytes(arena.name()) <= idle);
}

TEST_CASE("a full arena returns null until a block is freed") {
  SharedArena arena(new_memory(4 * kMiB));
  CHECK(arena.allocate(0) == nullptr);
  CHECK(arena.allocate(4 * kMiB) == nullptr);  // the first page is reserved
  CHECK(arena.allocate(~std::size_t{0}) == nullptr);
  std::byte* const block = arena.allocate(3 * kMiB);
  REQUIRE(block);
  CHECK(arena.allocate(2 * kMiB) == nullptr);
  arena.free(block);
  CHECK(arena.allocate(2 * kMiB) != nullptr);
}

TEST_CASE("threads allocate and free blocks of an arena concurrently") {
  SharedArena arena(new_memory(256 * kMiB));
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        Rng rng = Rng::stream(1, t);
        for (int i = 0; i < 300; ++i) {
          const std::size_t bytes = 1 + rng.below(kMiB / 2);
          std::byte* const block = arena.allocate(bytes);
          std::memset(block, static_cast<int>(t + 1), bytes);
          std::this_thread::yield();
          for (std::size_t at = 0; at < bytes; at += 509) wrong += block[at] != std::byte(t + 1);
          arena.free(block);
        }
      });
  }
  CHECK(wrong == 0);
  CHECK(arena.bytes_in_use() == 0);
}

TEST_CASE("a reader sees the owner's writes and cannot write") {
  SharedMemory owned = new_memory(kMiB);
  const auto read = SharedMemory::open(owned.name());
  REQUIRE(read);
  owned.mutable_data()[kMiB - 1] = std::byte{7};
  CHECK(read->data()[kMiB - 1] == std::byte{7});
  CHECK(permissions(owned.data()) == "rw-s");
  CHECK(permissions(read->data()) == "r--s");
  auto* const page = const_cast<std::byte*>(read->data());
  CHECK(::mprotect(page, kMiB, PROT_READ | PROT_WRITE) != 0);
  CHECK_THROWS_AS(const_cast<SharedMemory&>(*read).mutable_data(), CheckFailed);
}

TEST_CASE("the size of shared memory cannot change") {
  const SharedMemory owned = new_memory(kMiB);
  CHECK(::ftruncate(owned.name().fd, 0) != 0);
  CHECK(::ftruncate(owned.name().fd, 2 * kMiB) != 0);
}

TEST_CASE("a name of different memory, of no memory or of no file is refused") {
  const SharedMemory owned = new_memory(kMiB), other = new_memory(kMiB);
  const SharedMemoryName right = owned.name();
  REQUIRE(SharedMemory::open(right));

  SharedMemoryName name = right;
  name.nonce[1] ^= 1;
  CHECK(is_refused(name));
  name = right;
  name.fd = other.name().fd;
  CHECK(is_refused(name));
  name = right;
  name.pid = 1;
  CHECK(is_refused(name));
  for (const std::int32_t pid : {0, -1, INT32_MIN, INT32_MAX}) {
    name.pid = pid;
    CHECK(is_refused(name));
  }
  name = right;
  for (const std::int32_t fd : {-1, 1 << 20, INT32_MAX}) {
    name.fd = fd;
    CHECK(is_refused(name));
  }
  name = right;
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{4096}, right.bytes - 1,
                                    2 * right.bytes, ~std::uint64_t{0}, ~std::uint64_t{4095}}) {
    name.bytes = bytes;
    CHECK(is_refused(name));
  }
  CHECK(is_refused({}));
}

TEST_CASE("a pipe, a file on disk and memory without seals are refused") {
  SharedMemory owned = new_memory(kMiB);
  SharedMemoryName name = owned.name();

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  name.fd = ends[0];  // opening it would block until a writer opens the pipe
  CHECK(is_refused(name));
  ::close(ends[0]);
  ::close(ends[1]);

  const auto imitate = [&](int fd) {  // same size and first page as shared memory
    REQUIRE(::ftruncate(fd, kMiB) == 0);
    REQUIRE(::pwrite(fd, owned.data(), SharedMemory::kFirst, 0) ==
            static_cast<ssize_t>(SharedMemory::kFirst));
    name.fd = fd;
    return name;
  };
  char path[] = "/tmp/shared_arena_test_XXXXXX";
  const int file = ::mkstemp(path);
  REQUIRE(file >= 0);
  CHECK(is_refused(imitate(file)));
  ::close(file);
  ::unlink(path);

  const int unsealed = ::memfd_create("leeway-test", MFD_ALLOW_SEALING);
  REQUIRE(unsealed >= 0);
  CHECK(is_refused(imitate(unsealed)));
  REQUIRE(::fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK(SharedMemory::open(name));  // with seals it is accepted
  ::close(unsealed);
}

TEST_CASE("a forked child inherits neither its parent's shared memory nor its mappings") {
  const SharedMemory owned = new_memory(kMiB);
  const auto read = SharedMemory::open(owned.name());
  REQUIRE(read);
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char resident = 0;
    const auto is_unmapped = [&](const std::byte* at) {
      return ::mincore(const_cast<std::byte*>(at), 4096, &resident) != 0;
    };
    ::_exit(is_unmapped(owned.data()) && is_unmapped(read->data()) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
