#include "tensor/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/text.hpp"

namespace leeway {

namespace {

constexpr std::uint64_t kMagic = 0x6d68732079617765ull;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// The C library of some systems lacks these constants.
constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL, Linux 6.3
constexpr int kPopulateWrite = 23;   // MADV_POPULATE_WRITE, Linux 5.14

struct FirstPage {
  std::uint64_t magic;
  std::array<std::uint64_t, 2> nonce;
};

Error system_error(const char* what) {
  return {concat("shared memory: ", what, ": ", std::strerror(errno))};
}

/// Closes a file descriptor.
struct File {
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

int new_memfd(const char* label) {
  const int fd = ::memfd_create(label, MFD_CLOEXEC | kNoExecSeal | MFD_ALLOW_SEALING);
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/// Growing a file beyond the limit raises a signal.
bool exceeds_file_limit(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         bytes > limit.rlim_cur;
}

/// A path descriptor (O_PATH) of the named file of another process. It does not open the file,
/// because opening a pipe or a device has side effects.
int open_path(const SharedMemoryName& name) {
  const std::string path = concat("/proc/", name.pid, "/fd/", name.fd);
  return ::open(path.c_str(), O_PATH | O_CLOEXEC);
}

}  // namespace

Expected<SharedMemory> SharedMemory::create(const char* label, std::size_t bytes) {
  LW_CHECK(bytes >= kFirst && bytes % kFirst == 0, bytes);
  SharedMemory memory;
  if (exceeds_file_limit(bytes))
    return Error{concat("shared memory: ", bytes,
                        " bytes exceed the limit on file sizes; raise it with ulimit -f")};
  memory.fd_ = new_memfd(label);
  if (memory.fd_ < 0) return system_error("memfd_create");
  if (::ftruncate(memory.fd_, static_cast<off_t>(bytes)) != 0) return system_error("ftruncate");
  if (::fcntl(memory.fd_, F_ADD_SEALS, kSeals) != 0) return system_error("sealing");
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory.fd_, 0);
  if (mapped == MAP_FAILED) return system_error("mmap");
  memory.bytes_ = static_cast<std::byte*>(mapped);
  memory.name_ = {::getpid(), memory.fd_, bytes, {}};
  if (::madvise(mapped, bytes, MADV_DONTFORK) != 0) return system_error("madvise");
  auto& nonce = memory.name_.nonce;
  if (::getrandom(nonce.data(), sizeof nonce, 0) != static_cast<ssize_t>(sizeof nonce))
    return system_error("getrandom");
  if (!memory.fill(0, kFirst)) return system_error("no memory");
  const FirstPage page{kMagic, nonce};
  std::memcpy(memory.bytes_, &page, sizeof page);
  return memory;
}

Expected<SharedMemory> SharedMemory::open(const SharedMemoryName& name) {
  if (name.pid <= 0 || name.fd < 0 || name.bytes < kFirst || name.bytes % kFirst != 0 ||
      name.bytes > static_cast<std::uint64_t>(PTRDIFF_MAX))
    return Error{"shared memory: the offer has an invalid process, file or size"};
  const File path{open_path(name)};
  if (path.fd < 0) return system_error("the offer names an unknown process or file");
  struct stat status {};
  if (::fstat(path.fd, &status) != 0) return system_error("fstat");
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return Error{"shared memory: the offer names no memory of this user"};
  const std::string itself = concat("/proc/self/fd/", path.fd);
  const File file{::open(itself.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  if (file.fd < 0) return system_error("opening");
  // Only a memfd can have these seals, and they fix its size.
  const int seals = ::fcntl(file.fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(file.fd, &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) != name.bytes)
    return Error{"shared memory: the offer names no sealed memory of its size"};
  SharedMemory memory;
  void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(name.bytes), PROT_READ,
                              MAP_SHARED | MAP_NORESERVE, file.fd, 0);
  if (mapped == MAP_FAILED) return system_error("mmap");
  memory.bytes_ = static_cast<std::byte*>(mapped);
  memory.name_ = name;
  if (::madvise(mapped, memory.size(), MADV_DONTFORK) != 0) return system_error("madvise");
  FirstPage page{};
  std::memcpy(&page, memory.bytes_, sizeof page);
  if (page.magic != kMagic || page.nonce != name.nonce)
    return Error{"shared memory: the offer names different memory; its owner is on another host"};
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : name_(std::exchange(other.name_, {})),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(std::exchange(other.bytes_, nullptr)) {}

SharedMemory& SharedMemory::operator=(SharedMemory other) noexcept {
  std::swap(name_, other.name_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (bytes_) ::munmap(bytes_, size());
  if (fd_ >= 0) ::close(fd_);
}

std::byte* SharedMemory::mutable_data() {
  LW_CHECK(fd_ >= 0);
  return bytes_;
}

bool SharedMemory::fill(std::size_t offset, std::size_t bytes) {
  LW_CHECK(fd_ >= 0 && offset <= size() && bytes <= size() - offset, offset, bytes);
  if (::madvise(bytes_ + offset, bytes, kPopulateWrite) == 0) return true;
  if (errno != EINVAL) return false;  // EINVAL: Linux is older than 5.14
  return ::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0;
}

void SharedMemory::empty(std::size_t offset, std::size_t bytes) {
  LW_CHECK(fd_ >= 0 && offset <= size() && bytes <= size() - offset, offset, bytes);
  // A failure only keeps the memory allocated.
  (void)::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(bytes));
}

}  // namespace leeway
