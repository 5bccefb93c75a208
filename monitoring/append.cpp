#include "monitoring/append.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace leeway {

bool append_whole(int file, std::string_view bytes) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return false;
  off_t end = info.st_size;
  while (!bytes.empty()) {
    const ::ssize_t got = ::pwrite(file, bytes.data(), bytes.size(), end);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int reason = got == 0 ? ENOSPC : errno;
      (void)!::ftruncate(file, info.st_size);
      errno = reason;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(got));
    end += got;
  }
  return true;
}

}  // namespace leeway
